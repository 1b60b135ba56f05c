/** The files that the command line names: images of the prompt, and the one that gets the last answer. */
import { closeSync, constants, fstatSync, ftruncateSync, openSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { ImagePart } from '../../contract/values/message.ts'
import { codeOf } from '../../lib/error-code.ts'
import type { RunInvocation } from '../command-line/run-options.ts'
import { UsageError } from '../command-line/usage-error.ts'
import { readImage } from '../conversation/read-image.ts'

type PromptFiles = {
  readonly images: readonly ImagePart[]
  /** An absolute path. */
  readonly answer: string | undefined
}

/** Call it before `leaveProject`: the paths are relative to the current directory. Throws a `UsageError`. */
export async function readNamedFiles({ images: paths, lastMessage }: RunInvocation): Promise<PromptFiles> {
  const images: ImagePart[] = []
  for (const path of paths) {
    const image = await readImage(path)
    if (typeof image === 'string') throw new UsageError(`--image ${path} cannot be sent: ${image}.`)
    images.push(image)
  }
  return { images, answer: lastMessage === undefined ? undefined : resolve(lastMessage) }
}

/** Empties the file, so that an answer of an earlier command is not taken for the one of this one. Throws a `UsageError`. */
export function emptyAnswer(path: string | undefined): void {
  if (path === undefined) return
  try {
    const file = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NONBLOCK, 0o666)
    // A pipe stays open: its reader would take the first close for the end.
    if (!fstatSync(file).isFile()) return
    ftruncateSync(file)
    closeSync(file)
  } catch (cause) {
    throw new UsageError(`--output-last-message ${path} cannot be written (${reasonOf(cause)}).`, { cause })
  }
}

/** Throws an `Error` for a person. */
export async function writeAnswer(path: string, text: string): Promise<void> {
  try {
    // This fails without a reader: the next line would wait for one in a thread that nothing ends.
    closeSync(openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NONBLOCK, 0o666))
    await writeFile(path, text)
  } catch (cause) {
    throw new Error(`the answer cannot be written to ${path} (${reasonOf(cause)}).`, { cause })
  }
}

function reasonOf(error: unknown): string {
  const code = codeOf(error) ?? 'error'
  return code === 'ENXIO' ? 'nobody reads this pipe' : code
}
