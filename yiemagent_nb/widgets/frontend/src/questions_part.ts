// The part that shows a server's question.

import "./styles/questions.css";

export { QuestionCard } from "./question_card";
