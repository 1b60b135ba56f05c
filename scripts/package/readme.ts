/** The README of the npm package: the page about the client, whose links to other pages are plain text. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const PAGE = join(import.meta.dirname, '../../docs/client.md')

export function makeReadme(): string {
  return readFileSync(PAGE, 'utf8').replaceAll(/\[([^\]]+)\]\((?!https?:|#)[^)]+\)/g, '$1')
}
