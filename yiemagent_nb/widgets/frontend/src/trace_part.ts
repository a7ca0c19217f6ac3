// The part that is the panel of the trace.

import "./styles/trace.css";

export { TraceView } from "./trace/trace_view";
