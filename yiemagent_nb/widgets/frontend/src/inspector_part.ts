// The part that is the tool inspector.

import "./styles/inspector.css";

export { InspectorView } from "./inspector/inspector_view";
export { SchemaForm } from "./schema_form/schema_form";
