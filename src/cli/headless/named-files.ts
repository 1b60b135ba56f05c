/** The files that the command line names: images of the prompt, and the one that gets the last answer. */
import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { ImagePart } from '../../contract/message.ts'
import { codeOf } from '../../lib/error-code.ts'
import type { RunInvocation } from '../command-line/run-options.ts'
import { UsageError } from '../command-line/usage-error.ts'
import { readImage } from '../read-image.ts'

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
export async function emptyAnswer(path: string | undefined): Promise<void> {
  if (path === undefined) return
  await writeFile(path, '').catch((cause: unknown) => {
    throw new UsageError(`--output-last-message ${path} cannot be written (${codeOf(cause) ?? 'error'}).`, { cause })
  })
}
