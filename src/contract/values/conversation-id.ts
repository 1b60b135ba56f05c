/** What the id of a conversation looks like. It loads nothing: the arguments are read before any package. */
export const CONVERSATION_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
