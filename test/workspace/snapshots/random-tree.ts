/** Trees that change at random, and what they contain: contents, kinds and modes, byte for byte. */
import * as fs from 'node:fs'
import type { Random } from '../../support/random.ts'

/** What is at each path (latin1) below the directory: kind, mode, and content or target. */
export function describeTree(directory: string, except: (path: string) => boolean = () => false): Map<string, string> {
  const found = new Map<string, string>()
  const visit = (path: string) => {
    const at = Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(path, 'latin1')])
    for (const name of fs.readdirSync(at, { encoding: 'buffer' })) {
      const inner = path === '' ? name.toString('latin1') : `${path}/${name.toString('latin1')}`
      if (except(inner)) continue
      const full = Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(inner, 'latin1')])
      const facts = fs.lstatSync(full)
      const mode = (facts.mode & 0o7777).toString(8)
      if (facts.isDirectory()) {
        found.set(inner, `directory ${mode}`)
        visit(inner)
      } else if (facts.isSymbolicLink())
        found.set(inner, `link ${fs.readlinkSync(full, { encoding: 'buffer' }).toString('latin1')}`)
      else if (facts.isFile()) found.set(inner, `file ${mode} ${fs.readFileSync(full).toString('latin1')}`)
      else found.set(inner, 'other')
    }
  }
  visit('')
  return found
}

export const sorted = (found: Map<string, string>) => [...found].sort(([a], [b]) => (a < b ? -1 : 1))

/** Names that programs take for something else, are no UTF-8, or are ignored at times. */
const NAMES = [
  'a',
  'b',
  'c.txt',
  'd.log',
  'e f',
  'q"uote',
  'new\nline',
  'back\\slash',
  '\xff\xfe',
  'build',
  'sub',
  'nested',
]
/** More than a snapshot keeps. */
export const LARGE = Buffer.alloc(10 * 1024 * 1024 + 1, 'x')

/** Makes one change by hand; one that is not possible in this tree is none. */
export function changeSomething(workdir: string, { below, pick }: Random): void {
  const depth = 1 + below(3)
  const path = Array.from({ length: depth }, () => pick(NAMES)).join('/')
  const at = Buffer.concat([Buffer.from(`${workdir}/`), Buffer.from(path, 'latin1')])
  const parent = Buffer.from(at.subarray(0, at.lastIndexOf(0x2f)))
  // A change through a link would be one of what it leads to.
  if (leadsThroughLink(at)) return
  try {
    switch (below(10)) {
      case 0:
        return fs.rmSync(at, { recursive: true, force: true })
      case 1:
        return isLink(at) ? undefined : changeMode(at, pick([0o600, 0o644, 0o755, 0o700, 0o664, 0o775]))
      case 2:
        fs.mkdirSync(parent, { recursive: true })
        return fs.symlinkSync(pick(['../outside/secret', '/usr/missing', 'a', 'missing', '..']), at)
      case 3:
        fs.mkdirSync(at, { recursive: true })
        return
      case 4:
        return fs.writeFileSync(`${workdir}/.gitignore`, pick(['*.log\n', 'build/\n', '*.log\nbuild\n!b/d.log\n', '']))
      case 5:
        if (below(4) > 0 || isLink(at)) return
        return fs.writeFileSync(at, LARGE)
      case 6:
        return fs.renameSync(at, Buffer.concat([parent, Buffer.from('/sub')]))
      default:
        fs.mkdirSync(parent, { recursive: true })
        if (isLink(at)) fs.unlinkSync(at)
        return fs.writeFileSync(at, pick(['one\n', 'two\r\n', '', '\0binary\xff', `random ${below(1000)}`]))
    }
  } catch {
    // It is not possible in this tree.
  }
}

/** Only root sees what is in a directory that nobody may enter, and the test has to. */
function changeMode(at: Buffer, mode: number): void {
  const mustEnter = process.getuid?.() !== 0 && fs.statSync(at).isDirectory()
  fs.chmodSync(at, mustEnter ? mode | 0o100 : mode)
}

const isLink = (at: Buffer) => fs.lstatSync(at, { throwIfNoEntry: false })?.isSymbolicLink() === true

/** What comes before a slash is a link. */
function leadsThroughLink(at: Buffer): boolean {
  for (let end = at.indexOf(0x2f, 1); end > 0; end = at.indexOf(0x2f, end + 1)) {
    try {
      if (isLink(at.subarray(0, end))) return true
    } catch {
      return false // a file: nothing is below it
    }
  }
  return false
}

/** Returns a function that tells whether a path is one of these, or is below one. */
export const isWithin = (paths: readonly string[]) => (path: string) =>
  paths.some((left) => path === left || path.startsWith(`${left}/`))
