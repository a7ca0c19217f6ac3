// The part that reads what a person attaches.

export { readUpload } from "./upload";
