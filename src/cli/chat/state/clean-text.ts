/** Makes text that others wrote safe to print: models, tools, file names and other clients must not control the terminal. */

import { withoutSequences } from '../../../telemetry/plain-text.ts'

// oxlint-disable-next-line no-control-regex -- these are the characters to find
const CONTROLS = /[\0-\x08\x0b-\x1f\x7f-\x9f]/g

/** Marks that change the direction of writing: what is shown would not be what is there. */
const DIRECTION = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** Characters without a width. The zero-width joiner stays, because emoji need it. */
const INVISIBLE =
  /[\u00ad\u180e\u200b\u200c\u2028\u2029\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu

/**
 * Everything that could not be seen, or is seen as something else: characters without a shape, all spaces except the usual
 * one, letters that are blank, and marks that join or select the shape of others.
 */
export const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu
/** The spaces at the end of a line: one of them makes `\\` something else than a continued line. */
const LAST_SPACES = /(?<! ) +$/gm
/** More marks on one character are a long text in a single column. */
const MANY_MARKS = /\p{M}(?<=\p{M}{7})\p{M}{0,4096}/gu

const TAB = '    '

/** Returns the text without control sequences. Marks of direction are shown as their code. */
export const cleanText = (text: string): string => savedText(text).replaceAll('\t', TAB)

/** The same for what leaves the chat, such as a copy of code: tabs stay. */
export function savedText(text: string): string {
  return withoutSequences(text.toWellFormed())
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map(afterReturn)
    .join('\n')
    .replaceAll(CONTROLS, '')
    .replaceAll(INVISIBLE, '')
    .replaceAll(MANY_MARKS, '')
    .replaceAll(DIRECTION, codeOf)
}

/** The same in one line. */
export const cleanLine = (text: string): string => cleanText(text.replaceAll(/[\r\n]+/g, ' ⏎ '))

/** Returns the text with a visible code for every character that could not be seen. For what a person approves. */
export function revealText(text: string): string {
  return text
    .replaceAll(/[\ud800-\udfff]/g, (unit, at: number, all: string) => (isPaired(all, at) ? unit : codeOf(unit)))
    .replaceAll('\t', TAB)
    .replaceAll(LAST_SPACES, (spaces) => codeOf(' ').repeat(spaces.length))
    .split('\n')
    .map((line) => line.replaceAll(UNSEEN, codeOf))
    .join('\n')
}

/** The same in one line. For names. */
export const revealLine = (text: string): string => revealText(text).replaceAll('\n', codeOf)

/** Programs show their progress by writing a line again after a carriage return. */
const afterReturn = (line: string): string => line.slice(line.replace(/(?<!\r)\r+$/, '').lastIndexOf('\r') + 1)

const codeOf = (character: string): string =>
  `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}>`

function isPaired(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return code < 0xdc00 ? isBetween(text.charCodeAt(at + 1), 0xdc00) : isBetween(text.charCodeAt(at - 1), 0xd800)
}

const isBetween = (code: number, first: number): boolean => code >= first && code < first + 0x400
