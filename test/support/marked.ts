/** The processes that the shells of a conversation have started, as anybody can find them: by their environment. */
import { readdirSync, readFileSync } from 'node:fs'
import type { ProcessEntry } from '../../src/shell/processes/process-table.ts'
import { findProcess } from '../../src/shell/processes/process-table.ts'

/** Leaves out zombies. `id` is that of the conversation. */
export function markedProcesses(id: string): ProcessEntry[] {
  return readdirSync('/proc').flatMap((name) => {
    const entry = environmentOf(name).includes(`\0AGENT_SERVER_SHELL=${id}/`) ? findProcess(Number(name)) : undefined
    return entry && !entry.isZombie ? [entry] : []
  })
}

function environmentOf(name: string): string {
  try {
    return /^\d+$/.test(name) ? `\0${readFileSync(`/proc/${name}/environ`, 'utf8')}` : ''
  } catch {
    return '' // it has ended
  }
}
