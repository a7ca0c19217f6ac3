"""What the public conformance suite drives: connects to its servers and uses all that is there.

Only the public interface is used here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2

from yiemagent_nb.mcp.oauth import OAuth
from yiemagent_nb.mcp.server import McpServer

__all__ = ["run"]

METADATA_URL = "https://conformance-test.local/client-metadata.json"
"""Where the suite says that this client's metadata stand."""

SAMPLES: Mapping[str, Any] = {
    "string": "text",
    "number": 5,
    "integer": 5,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}


async def run(scenario: str, url: str, context: Mapping[str, Any]) -> None:
    """Connect as a scenario wants it, and use everything.

    Args:
        scenario: Its name.
        url: The address of its server.
        context: What belongs to it: keys, calls to make.

    Raises:
        McpError: The server refused something.
    """
    auth = await login(scenario, url, context) if scenario.startswith("auth/") else None
    async with McpServer.http(url, auth=auth, on_elicitation=accept_with_defaults, timeout=20) as server:
        await use(server, context)


async def use(server: McpServer, context: Mapping[str, Any]) -> None:
    """Call every tool, read every resource and get every prompt."""
    capabilities = server.info.capabilities
    if "tools" in capabilities:
        tools = {tool["name"]: tool["inputSchema"] for tool in await server.list_tools()}
        given: list[dict[str, Any]] = context.get("toolCalls", [])
        calls = [(call["name"], call["arguments"]) for call in given]
        calls = calls or [(name, sample(schema, tools)) for name, schema in tools.items()]
        await asyncio.gather(*(server.call_tool(name, arguments) for name, arguments in calls))
    if "resources" in capabilities:
        for resource in await server.list_resources():
            await server.read_resource(resource["uri"])
    if "prompts" in capabilities:
        for prompt in await server.list_prompts():
            await server.get_prompt(prompt["name"], {each["name"]: "text" for each in prompt.get("arguments", [])})


def sample(schema: Mapping[str, Any], tools: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that fit a schema; one that is called ``schema`` gets that of the first tool, for a round trip."""
    properties = cast("dict[str, dict[str, Any]]", schema.get("properties", {}))
    return {
        name: next(iter(tools.values())) if name == "schema" else SAMPLES.get(str(part.get("type")), "text")
        for name, part in properties.items()
        if name in schema.get("required", [])
    }


def accept_with_defaults(message: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Give no value, so that each field keeps its default."""
    del message, schema
    return {}


async def login(scenario: str, url: str, context: Mapping[str, Any]) -> OAuth:
    """The login that a scenario is about."""
    match scenario:
        case "auth/client-credentials-basic":
            return OAuth.client_credentials(context["client_id"], context["client_secret"], issuer=await issuer_of(url))
        case "auth/client-credentials-jwt":
            return OAuth.private_key_jwt(
                context["client_id"],
                context["private_key_pem"],
                issuer=await issuer_of(url),
                algorithm=context["signing_algorithm"],
            )
        case "auth/enterprise-managed-authorization":

            async def assertion(audience: str, resource: str) -> str:
                return await exchange(context, audience, resource)

            return OAuth.identity_assertion(
                context["client_id"],
                context["client_secret"],
                assertion,
                issuer=await issuer_of(url),
                method="client_secret_basic",
            )
        case "auth/wif-jwt-bearer":

            async def workload_token(audience: str, resource: str) -> str:
                del audience, resource
                return str(context["valid_jwt"])

            return OAuth.identity_assertion(context["client_id"], None, workload_token, issuer=await issuer_of(url))
        case _:
            return OAuth(
                open_browser=visit,
                client_id=context.get("client_id"),
                client_secret=context.get("client_secret"),
                issuer=context.get("issuer"),
                client_metadata_url=METADATA_URL,
                timeout=10,
            )


def visit(address: str) -> None:
    """Be the browser of a person who says yes."""
    httpx2.get(address, follow_redirects=True)


async def issuer_of(url: str) -> str:
    """The authorization server, which a person would know."""
    parts = urlsplit(url)
    async with httpx2.AsyncClient() as client:
        answer = await client.get(f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}")
    return str(answer.json()["authorization_servers"][0])


async def exchange(context: Mapping[str, Any], audience: str, resource: str) -> str:
    """Ask the identity provider for an identity assertion, as a company's own code would."""
    data = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "subject_token": context["idp_id_token"],
        "client_id": context["idp_client_id"],
        "audience": audience,
        "resource": resource,
    }
    async with httpx2.AsyncClient() as client:
        answer = await client.post(context["idp_token_endpoint"], data=data)
    return str(answer.raise_for_status().json()["access_token"])
