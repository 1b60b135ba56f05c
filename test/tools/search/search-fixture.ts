/** The search tools on files of a test. */
import { execFileSync } from 'node:child_process'
import { mkdir, utimes } from 'node:fs/promises'
import { dirname } from 'node:path'
import { openJail } from '../../../src/files/jail/path-jail.ts'
import type { AgentFiles } from '../../../src/tools/files/agent-files.ts'
import type { SearchAccess } from '../../../src/tools/search/search-place.ts'
import type { Tool } from '../../../src/tools/tool.ts'
import { openFiles } from '../editor/editor-fixture.ts'

/** Debian's package `ripgrep`; tests fail without it. */
export const RIPGREP = execFileSync('bash', ['-c', 'command -v rg']).toString().trim()

type Make = (deps: { readonly files: AgentFiles; readonly search: SearchAccess }) => Tool

/** With files of that content; the first one is the newest. */
export async function openSearch(make: Make, contents: Readonly<Record<string, string | Buffer>>, ripgrep?: string) {
  // Asked for when the rules are known.
  let server = ''
  const search: SearchAccess = {
    ripgrep: () => ripgrep,
    openJail: (workdir, signal) =>
      openJail({ workdir, rules: { forbidden: [server, '/proc'] }, io: (work) => work(), signal }),
  }
  const fixture = await openFiles((files) => make({ files, search }))
  server = fixture.server
  for (const [at, [name, content]] of Object.entries(contents).entries()) {
    await mkdir(dirname(fixture.at(name)), { recursive: true })
    await fixture.write(name, content)
    const changed = new Date(2026, 0, 1, 12, 0, 1000 - at)
    await utimes(fixture.at(name), changed, changed)
  }
  return fixture
}
