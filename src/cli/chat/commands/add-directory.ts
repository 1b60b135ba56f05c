/** The command that lets the agent work in another directory. */
import { homedir } from 'node:os'
import { resolve } from 'node:path'
import { cleanLine } from '../state/clean-text.ts'
import type { ChatContext } from './command.ts'

/** Throws if it is not a directory that the server allows, or while the agent works. */
export async function addDirectory({ session, options }: ChatContext, path: string): Promise<void> {
  if (path === '') throw new Error('Give the directory: /add-dir DIRECTORY.')
  const { workdir, additional_directories: former = [] } = await session.conversation.get()
  const isHere = options.server === undefined
  const directory = isHere ? resolve(workdir, path.replace(/^~(?=\/|$)/, homedir)) : path
  const newView = await session.conversation.updateConfig({ additional_directories: [...former, directory] })
  session.say(`The agent works in ${(newView.additional_directories ?? []).map(cleanLine).join(', ')}, too.`)
}
