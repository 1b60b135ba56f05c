/** Writes what a person has agreed to keep into the settings file, which nobody else can read then. */
import type { Stats } from 'node:fs'
import { lstat, realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { UsageError } from '../command-line/usage-error.ts'
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import { makeDirectories } from '../../files/make-directories.ts'
import { readSmallFile, whyUnreadable } from '../../files/small-file.ts'
import { replaceFile } from '../../lib/durable-file.ts'
import { ignoreMissing } from '../../lib/error-code.ts'

/**
 * Sets these fields, and leaves the others of the file as they are. Returns a sentence about what else was changed. Throws a
 * `UsageError` that says why nothing was written.
 */
export async function keepSettings(path: string, values: LlmConfig): Promise<string | undefined> {
  try {
    return await writeSettings(path, values)
  } catch (cause) {
    if (cause instanceof UsageError) throw cause
    throw new UsageError(`${path} cannot be written (${whyUnreadable(cause)}).`, { cause })
  }
}

async function writeSettings(path: string, values: LlmConfig): Promise<string | undefined> {
  await makeDirectories(dirname(path), 0o700)
  // A link stays one, for those who keep their settings elsewhere.
  const target = await targetOf(path)
  requireOwnDirectory(dirname(target), await stat(dirname(target)))
  const before = await stat(target).catch(ignoreMissing)
  if (before) requireOwnFile(target, before)
  const text = before ? (await readSmallFile(target)).toString('utf8') : ''
  await replaceFile(target, withFields(text, values, target))
  const wasOpen = before !== undefined && (before.mode & 0o077) !== 0
  return wasOpen ? `Other users could read ${target}; only you can now.` : undefined
}

async function targetOf(path: string): Promise<string> {
  const target = await realpath(path).catch(ignoreMissing)
  if (target !== undefined) return target
  const link = await lstat(path).catch(ignoreMissing)
  if (link) throw new UsageError(`${path} is a link to a file that does not exist.`)
  return path
}

function requireOwnFile(path: string, { uid, ...stats }: Stats): void {
  if (!(stats.mode & 0o100000)) throw new UsageError(`${path} is not a regular file.`)
  if (uid !== userId(uid)) throw new UsageError(`${path} belongs to another user (${uid}).`)
}

/** A user who can write there can replace the file, and name another endpoint for the key. */
function requireOwnDirectory(path: string, { uid, mode }: Stats): void {
  if (uid !== userId(uid) && uid !== 0) throw new UsageError(`${path} belongs to another user (${uid}).`)
  if ((mode & 0o002) !== 0) throw new UsageError(`all users can write to ${path}; run chmod o-w on it.`)
}

/** `otherwise`: on Windows, where users have no number. */
const userId = (otherwise: number): number => process.getuid?.() ?? otherwise

/** `text` is empty for a new file. Its order, its other fields and its indentation stay. */
function withFields(text: string, values: LlmConfig, path: string): string {
  const before = text.trim() === '' ? {} : objectIn(text, path)
  const indent = /\n([ \t]+)"/.exec(text)?.[1] ?? 2
  return `${JSON.stringify({ ...before, ...values }, null, indent)}\n`
}

function objectIn(text: string, path: string): object {
  try {
    const json: unknown = JSON.parse(text)
    if (typeof json === 'object' && json !== null && !Array.isArray(json)) return json
  } catch {
    // The error of the parser quotes the file, which can contain a key.
  }
  throw new UsageError(`${path} is not valid JSON.`)
}
