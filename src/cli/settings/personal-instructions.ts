/** The person's own instructions for agents of this machine. Only the command line reads them: a server has many users. */
import { personalInstructionPaths } from '../../config/paths.ts'
import { readSmallFile, whyUnreadable } from '../../files/small-file.ts'
import { MAX_INSTRUCTIONS_BYTES, readImports } from './personal-imports.ts'
import { codeOf } from '../../lib/error-code.ts'

export type PersonalInstructions = {
  /** Parts of the system prompt. */
  readonly texts: readonly string[]
  /** Sentences for the user. */
  readonly notices: readonly string[]
}

/** A file that cannot be used is a notice. `hidden`: paths with secrets, from which nothing is imported. */
export async function readPersonalInstructions(
  hiddenPaths: readonly string[],
  signal: AbortSignal,
): Promise<PersonalInstructions> {
  const instructions = await Promise.all(personalInstructionPaths().map((path) => readOne(path, hiddenPaths, signal)))
  return { texts: instructions.flatMap(({ texts }) => texts), notices: instructions.flatMap(({ notices }) => notices) }
}

async function readOne(
  path: string,
  hiddenPaths: readonly string[],
  signal: AbortSignal,
): Promise<PersonalInstructions> {
  try {
    const bytes = await readSmallFile(path, signal)
    if (bytes.length > MAX_INSTRUCTIONS_BYTES) throw new Error(`it has more than ${MAX_INSTRUCTIONS_BYTES / 1024} KiB`)
    const text = bytes.toString('utf8').trim()
    if (text === '') return { texts: [], notices: [] }
    const { files, refused } = await readImports({ path, text }, hiddenPaths)
    const all = [{ path, text }, ...files]
    return {
      texts: all.map((file) => `# Instructions of the user (${file.path})\n\n${file.text}`),
      notices: [...all.map((file) => `${file.path} is read as instructions.`), ...refused.map((why) => `${why}.`)],
    }
  } catch (error) {
    signal.throwIfAborted()
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return { texts: [], notices: [] }
    const reason = codeOf(error) === undefined && error instanceof Error ? error.message : whyUnreadable(error)
    return { texts: [], notices: [`${path} is not read as instructions: ${reason}.`] }
  }
}
