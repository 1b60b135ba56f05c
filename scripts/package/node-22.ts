/** What the sources use of Node 24 and newer, for the package, which also runs in Node 22. The bundle imports it from here. */
export { AsyncDisposableStack, DisposableStack } from '@whatwg-node/disposablestack'

/** `RegExp.escape`, for text outside of character classes. */
export const escapeText = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`)
