/** The `apply_patch` tool: changes several files by one patch, all of them or none. */
import { z } from 'zod'
import { asFile, decode, encode } from '../editor/editor-content.ts'
import { EditorError, doesNotExist } from '../editor/editor-faults.ts'
import type { Content } from '../editor/edit-history.ts'
import type { AgentFiles, EditPlace } from '../files/agent-files.ts'
import { absolutePath } from '../../policy/links/real-path.ts'
import { contentOf } from '../files/agent-files.ts'
import type { ToolAccess } from '../../policy/tool-access.ts'
import type { Tool, ToolContext } from '../tool.ts'
import type { ToolOutcome } from '../../state/tool-call.ts'
import { failure } from '../../state/tool-call.ts'
import type { FilePatch } from './parse-patch.ts'
import { parsePatch } from './parse-patch.ts'
import { patchText } from './patch-text.ts'

const ApplyPatchInput = z.object({ input: z.string().describe('The whole patch.') })
type ApplyPatchInput = z.infer<typeof ApplyPatchInput>

const DESCRIPTION = `Changes files by a patch: all of it, or nothing if a part does not fit.

*** Begin Patch
*** Add File: path
+each line of the new file
*** Update File: path
*** Move to: new path (optional)
@@ a line to find first, such as a class or function (optional)
 a line that is kept
-a line that is removed
+a line that is added
*** Delete File: path
*** End Patch

- Give about 3 kept lines before and after each change; the changes of a file must be in its order.
- Paths are relative to the working directory, or absolute.
- "*** End of File" behind a hunk says that its lines are the last ones.`

export function createApplyPatch(files: AgentFiles): Tool<ApplyPatchInput> {
  return {
    name: 'apply_patch',
    description: DESCRIPTION,
    input: ApplyPatchInput,
    output: z.string(),
    access: ({ input }) => accessOf(input),
    run: ({ input }, context) => files.change(context, () => applyPatch(files, context, input)),
  }
}

/** A patch that cannot be parsed changes nothing: its call is refused when it runs. */
function accessOf(input: string): ToolAccess {
  try {
    const parts = parsePatch(input)
    const targets = parts.flatMap((part) => (part.kind === 'update' && part.moveTo !== undefined ? [part.moveTo] : []))
    const isWhole = targets.length > 0 || parts.some(({ kind }) => kind === 'add')
    return { kind: 'edit', paths: [...parts.map(({ path }) => path), ...targets], isWhole }
  } catch {
    return { kind: 'none' }
  }
}

async function applyPatch(
  files: AgentFiles,
  { workdir, signal }: Pick<ToolContext, 'workdir' | 'signal'>,
  input: string,
): Promise<ToolOutcome> {
  try {
    return await applyParts(files, new PatchedFiles(files, workdir, signal), input)
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error
    return failure('interrupted', 'The call was interrupted; nothing was changed.')
  }
}

async function applyParts(files: AgentFiles, patchedFiles: PatchedFiles, input: string): Promise<ToolOutcome> {
  const doneParts: string[] = []
  for (const part of parsePatch(input)) doneParts.push(await patchedFiles.apply(part))
  await files.writeAll(patchedFiles.changes())
  return { output: ['The patch was applied:', ...doneParts].join('\n') }
}

/** The content of a file before and after the patch. */
type PatchedFile = { readonly place: EditPlace; now: Content; mode: number | undefined; oldPath?: string }

/** The files of a patch, in memory: nothing is written before the whole patch fits. */
class PatchedFiles {
  readonly #files: AgentFiles
  readonly #workdir: string
  readonly #signal: AbortSignal
  /** The key is the real path: two names can refer to one file. */
  readonly #open = new Map<string, PatchedFile>()

  constructor(files: AgentFiles, workdir: string, signal: AbortSignal) {
    this.#files = files
    this.#workdir = workdir
    this.#signal = signal
  }

  /** Returns a line for the result, such as `M src/a.ts`. */
  async apply(part: FilePatch): Promise<string> {
    const file = await this.#at(part.path)
    switch (part.kind) {
      case 'add':
        if (file.now) throw new EditorError(`${part.path} exists already; use "*** Update File".`)
        file.now = encodeNew(part.path, part.lines)
        return `A ${part.path}`
      case 'delete':
        if (!file.now) throw doesNotExist(part.path)
        file.now = undefined
        return `D ${part.path}`
      case 'update':
        return await this.#update(file, part)
    }
  }

  /** Removals last: after a failure, as much as possible still exists. */
  changes() {
    const changedFiles = [...this.#open.values()].filter(({ place, now }) => now !== contentOf(place))
    return changedFiles
      .map(({ place, now, mode, oldPath }) => ({ place, content: now, mode, oldPath }))
      .toSorted((a, b) => Number(!a.content) - Number(!b.content))
  }

  async #update(file: PatchedFile, { path, moveTo, hunks }: Extract<FilePatch, { kind: 'update' }>): Promise<string> {
    if (!file.now) throw doesNotExist(path)
    const decodedText = decode(path, file.now)
    const text = await patchText(path, decodedText.text, hunks, this.#signal)
    const bytes = encode(path, { ...decodedText, text })
    if (moveTo === undefined) {
      file.now = bytes
      return `M ${path}`
    }
    const target = await this.#at(moveTo)
    if (target.now) throw new EditorError(`${moveTo} exists already; ${path} cannot be moved there.`)
    target.now = bytes
    target.mode = file.mode
    target.oldPath = file.place.path
    file.now = undefined
    return `M ${path} -> ${moveTo}`
  }

  async #at(path: string): Promise<PatchedFile> {
    const foundEntry = await this.#files.look(absolutePath(this.#workdir, path))
    const place = foundEntry.kind === 'missing' ? foundEntry : asFile(path, foundEntry)
    let file = this.#open.get(place.path)
    if (!file) {
      file = { place, now: contentOf(place), mode: place.kind === 'file' ? place.mode : undefined }
      this.#open.set(place.path, file)
    }
    return file
  }
}

function encodeNew(path: string, lines: readonly string[]): Buffer {
  return encode(path, { text: lines.map((line) => `${line}\n`).join(''), encoding: 'utf-8', hasBom: false })
}
