/** Opens a text in the editor of the person, which has the terminal meanwhile. */
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { personalEditor } from '../../../config/config.ts'
import { readSmallFile, whyUnreadable } from '../../../files/small-file.ts'
import { startProcess } from '../../../lib/start-process.ts'
import { cleanText } from '../state/clean-text.ts'

/** Returns the text as it was saved. Throws if the editor fails, or leaves no file of up to 1 MiB. */
export async function editText(text: string, cwd: string): Promise<string> {
  const { command, env } = personalEditor()
  const directory = await mkdtemp(join(tmpdir(), 'agent-server-'))
  try {
    const path = join(directory, 'message.md')
    await writeFile(path, text, { mode: 0o600 })
    // The command can have arguments, as in `code --wait`, so a shell reads it, as git does.
    const child = startProcess('/bin/sh', ['-c', `${command} "$1"`, 'sh', path], { env, cwd, stdio: 'inherit' })
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new Error(`The editor (${command}) failed; set VISUAL or EDITOR to one that works.`)
    const savedBytes = await readSmallFile(path).catch((error: unknown) => {
      throw new Error(`The editor (${command}) left no text (${whyUnreadable(error)}); the prompt is unchanged.`)
    })
    return cleanText(savedBytes.toString()).trimEnd()
  } finally {
    await rm(directory, { recursive: true })
  }
}
