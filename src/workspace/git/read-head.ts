/** The commit of HEAD of the repository in a workdir, read without git: it is asked for with each snapshot. */
import type { OpenedPath } from '../../files/jail/opened-path.ts'
import type { Jail } from '../../files/jail/path-jail.ts'
import { enter, look, openToRead } from '../../files/jail/path-jail.ts'

const MAX_REF_BYTES = 4096
const MAX_PACKED_BYTES = 16 * 1024 ** 2
/** HEAD names a branch, which can be another name of one. */
const MAX_LINKS = 5
const COMMIT = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/

/** Returns undefined without a repository, and before its first commit. Throws a `Problem` if a part of it is not a file. */
export async function readHeadCommit(jail: Jail): Promise<string | undefined> {
  await using git = await enter(jail, jail.root, '.git')
  return git && (await commitOfRef(jail, git, 'HEAD'))
}

async function commitOfRef(jail: Jail, git: OpenedPath, first: string): Promise<string | undefined> {
  let ref = first
  for (let links = 0; links < MAX_LINKS; links++) {
    const text = (await textAt(jail, git, ref.split('/'), MAX_REF_BYTES)).trim()
    if (text === '') return await packedCommit(jail, git, ref)
    if (COMMIT.test(text)) return text
    const [, namedRef = ''] = /^ref: (refs\/[^\0]+)$/.exec(text) ?? []
    if (!namedRef.split('/').every((name) => name !== '' && !name.startsWith('.'))) return undefined
    ref = namedRef
  }
  return undefined
}

async function packedCommit(jail: Jail, git: OpenedPath, ref: string): Promise<string | undefined> {
  const lines = (await textAt(jail, git, ['packed-refs'], MAX_PACKED_BYTES)).split('\n')
  const commit = lines.find((line) => line.endsWith(` ${ref}`))?.slice(0, -ref.length - 1)
  return commit !== undefined && COMMIT.test(commit) ? commit : undefined
}

/** Returns '' for a file that does not exist, and the beginning of one that is too long. */
async function textAt(
  jail: Jail,
  from: OpenedPath,
  [name = '', ...inner]: readonly string[],
  max: number,
): Promise<string> {
  if (inner.length > 0) {
    await using next = await enter(jail, from, name)
    return next ? await textAt(jail, next, inner, max) : ''
  }
  await using entry = await look(jail, from, name)
  if (!entry) return ''
  await using file = await openToRead(jail, entry)
  const length = Math.min(Number(entry.stats.size), max)
  const { buffer, bytesRead } = await jail.io(() => file.read(Buffer.alloc(length), 0, length, 0))
  return buffer.toString('utf8', 0, bytesRead)
}
