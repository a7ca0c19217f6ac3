// The part that is the panel below the header.

import "./styles/settings.css";

export { BackendView } from "./backend_view";
