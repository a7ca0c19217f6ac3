// The part that searches the transcript.

import "./styles/search.css";

export { Search } from "./search";
