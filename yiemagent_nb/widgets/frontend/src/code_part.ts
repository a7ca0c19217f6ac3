// The part in which code is edited.

import "./styles/code.css";

export { CodeEditor } from "./code/editor";
export type { CodeEditorOptions, CodeLanguage, CodeProblem, Completions } from "./code/editor";
