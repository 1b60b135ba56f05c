/**
 * Links in the home of a conversation, through which programs find what is shown of the person's home: `~/.npmrc` is
 * there for them. Shells that run may change everything in that home meanwhile, so each directory is opened relative to
 * the one before, and never through a link.
 */
import { constants } from 'node:fs'
import { mkdir, readFile, readlink, symlink, unlink } from 'node:fs/promises'
import { basename, dirname, relative } from 'node:path'
import { replaceFile } from '../lib/durable-file.ts'
import { codeOf, ignoring } from '../lib/error-code.ts'
import type { HomeView } from './launch.ts'
import { openAt, within, type OpenedPath } from '../files/jail/opened-path.ts'

/** Names in the home, such as `.config/gh`, each with its target. */
export type HomeLinks = Readonly<Record<string, string>>

/**
 * Makes these links, and removes those that it has made before and that are not wanted any more: what a program writes
 * there would otherwise have no place. `record`, a file that no shell can write, keeps which these are. What the
 * conversation has put there itself stays. Must not run concurrently.
 */
export async function linkHome(home: OpenedPath, wantedLinks: HomeLinks, record: string): Promise<void> {
  const createdLinks = await readRecord(record)
  for (const [name, target] of Object.entries(createdLinks)) {
    if (wantedLinks[name] !== target)
      await inDirectory(home, name, (place) => removeLink(place, basename(name), target))
  }
  // The record precedes the links: a link that is not in it would never be removed.
  if (JSON.stringify(createdLinks) !== JSON.stringify(wantedLinks))
    await replaceFile(record, JSON.stringify(wantedLinks), { durable: false })
  for (const [name, target] of Object.entries(wantedLinks))
    await inDirectory(home, name, (place) => symlink(target, within(place, basename(name))))
}

async function readRecord(path: string): Promise<HomeLinks> {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written below
    return JSON.parse(await readFile(path, 'utf8')) as HomeLinks
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || error instanceof SyntaxError) return {}
    throw error
  }
}

async function removeLink(place: OpenedPath, name: string, target: string): Promise<void> {
  if ((await readlink(within(place, name))) === target) await unlink(within(place, name))
}

/** What the conversation has there is in the way of nothing else: it stays, and hides what is shown. */
const IN_THE_WAY: ReadonlySet<string> = new Set(['EEXIST', 'ENOTDIR', 'ELOOP', 'ENOENT', 'EINVAL', 'EACCES', 'EPERM'])

async function inDirectory(home: OpenedPath, name: string, work: (place: OpenedPath) => Promise<void>): Promise<void> {
  try {
    const directory = dirname(name)
    if (directory === '.') return await work(home)
    await using place = await enter(home, directory.split('/'))
    await work(place)
  } catch (error) {
    if (!IN_THE_WAY.has(codeOf(error) ?? '')) throw error
  }
}

async function enter(home: OpenedPath, names: readonly string[]): Promise<OpenedPath> {
  const flags = constants.O_DIRECTORY | constants.O_NOFOLLOW
  let place = await openAt(within(home, '.'), flags)
  for (const name of names) {
    await using parent = place
    const child = within(parent, name)
    await mkdir(child, { mode: 0o700 }).catch(ignoring('EEXIST'))
    place = await openAt(child, flags)
  }
  return place
}

/** The links for what a conversation sees, in a home that stands for that of the person. */
export const linksTo = ({ home, readable }: HomeView): HomeLinks =>
  Object.fromEntries(readable.map(({ at }) => [relative(home, at), at]))
