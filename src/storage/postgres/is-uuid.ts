/** Whether a text is the id of a conversation, in lower case: the database refuses any other text where it has one. */
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/

export const isUuid = (text: string): boolean => UUID.test(text)
