// The part that is the menu of the conversation.

export { ChatMenu } from "./chat_menu";
