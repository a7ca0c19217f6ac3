// The part that is the panel of hooks.

import "./styles/hooks.css";

export { HooksView } from "./hooks/hooks_view";
