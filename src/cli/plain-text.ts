/** Makes text of models, tools and files safe to print on a terminal. */
import { stripVTControlCharacters } from 'node:util'

/** Control characters except tab and newline, and marks that change the direction of text. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

/** Without escape sequences, which could change the title, the clipboard or earlier lines. */
export const plainText = (text: string): string => stripVTControlCharacters(text).replaceAll(UNSAFE, '')
