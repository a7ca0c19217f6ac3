// The part in which the arguments of a call are edited.

import "./styles/editor.css";

export { ArgumentsEditor } from "./arguments_editor";
