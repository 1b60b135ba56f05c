/** The person's own instructions for agents of this machine. Only the command line reads them: a server has many users. */
import { personalInstructionPaths } from '../../config/paths.ts'
import { readSmallFile, whyUnreadable } from '../../files/small-file.ts'
import { codeOf } from '../../lib/error-code.ts'

export type PersonalInstructions = {
  /** Parts of the system prompt. */
  readonly texts: readonly string[]
  /** Sentences for the user. */
  readonly notices: readonly string[]
}

/** Each request sends all of it. */
const MAX_BYTES = 64 * 1024

/** A file that cannot be used is a notice. */
export async function readPersonalInstructions(signal: AbortSignal): Promise<PersonalInstructions> {
  const read = await Promise.all(personalInstructionPaths().map((path) => readOne(path, signal)))
  return { texts: read.flatMap(({ texts }) => texts), notices: read.flatMap(({ notices }) => notices) }
}

async function readOne(path: string, signal: AbortSignal): Promise<PersonalInstructions> {
  try {
    const bytes = await readSmallFile(path, signal)
    if (bytes.length > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES / 1024} KiB`)
    const text = bytes.toString('utf8').trim()
    if (text === '') return { texts: [], notices: [] }
    return { texts: [`# Instructions of the user (${path})\n\n${text}`], notices: [`${path} is read as instructions.`] }
  } catch (error) {
    signal.throwIfAborted()
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return { texts: [], notices: [] }
    const reason = codeOf(error) === undefined && error instanceof Error ? error.message : whyUnreadable(error)
    return { texts: [], notices: [`${path} is not read as instructions: ${reason}.`] }
  }
}
