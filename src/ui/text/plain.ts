/** Prose without the marks of Markdown, for one line of a list. Pure. */

const MARKS = /\*\*|~~|`+/g
const HEADS = /(?<=^|\s)#{1,6}(?=\s)/g
const LINKS = /!?\[([^[\]]{0,200})\]\([^()\s]{0,500}\)/g

export const withoutMarks = (text: string): string =>
  text.replaceAll(LINKS, '$1').replaceAll(MARKS, '').replaceAll(HEADS, '')
