// The one way in which markup of a model becomes nodes.

import DOMPurify from "dompurify";

import { webAddress } from "./addresses";

const TAGS = [
  ..."a abbr b blockquote br code del details div dd dl dt em h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark".split(" "),
  ..."ol p pre q s samp small span strong sub summary sup table tbody td tfoot th thead tr u ul var".split(" "),
];
const ATTRIBUTES = ["href", "title", "alt", "src", "start", "align", "colspan", "rowspan", "open"];
const FORBIDDEN = [
  ..."style form input button textarea select option iframe frame object embed meta link base svg math".split(" "),
  ..."script noscript template slot audio video source track canvas dialog portal".split(" "),
];

const purifier = DOMPurify(window);

/** Parse markup and keep only plain text structure: no styles, ids, classes, data or event attributes. */
export function sanitize(html: string): DocumentFragment {
  const fragment = purifier.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    FORBID_TAGS: FORBIDDEN,
    FORBID_ATTR: ["style", "id", "name", "class", "srcset"],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i,
    ADD_URI_SAFE_ATTR: ["align", "colspan", "rowspan", "start", "open"],
    ADD_DATA_URI_TAGS: [],
    SANITIZE_NAMED_PROPS: true,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const link of fragment.querySelectorAll("a")) secure(link);
  for (const image of fragment.querySelectorAll("img")) image.replaceWith(imageStandIn(image));
  return fragment;
}

function isWebLink(address: string): boolean {
  return /^(?:https?:|mailto:)/i.test(address);
}

function secure(link: HTMLAnchorElement): void {
  if (!isWebLink(link.getAttribute("href") ?? "")) {
    link.removeAttribute("href");
    return;
  }
  link.setAttribute("rel", "noopener noreferrer nofollow");
  link.setAttribute("target", "_blank");
}

/** An image from elsewhere is loaded when a person asks for it, since loading it tells who reads. */
function imageStandIn(image: HTMLImageElement): Node {
  const address = image.getAttribute("src") ?? "";
  const name = image.getAttribute("alt") || "image";
  const host = webAddress(address)?.host;
  if (host === undefined) return document.createTextNode(`[${name}]`);
  const button = document.createElement("button");
  button.type = "button";
  button.className = "yna-load-image";
  button.textContent = `Load “${name}” from ${host}`;
  button.title = address;
  button.addEventListener("click", () => {
    const loaded = document.createElement("img");
    loaded.className = "yna-image";
    loaded.referrerPolicy = "no-referrer";
    loaded.alt = name;
    loaded.src = address;
    button.replaceWith(loaded);
  });
  return button;
}
