/** A stop does not wait for a process that the kernel does not end; the story of the same name has the exit code. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { RunCommand } from '../../../src/contract/values/command.ts'
import { canHangFiles, mountHangingFiles } from '../../support/hanging-files.ts'
import { markedProcesses } from '../../support/marked.ts'
import { realShells, setBench } from '../fixtures.ts'

test.runIf(canHangFiles)(
  'a conversation whose process waits for a file system is named, and is not waited for',
  async () => {
    const directory = await mkdtemp(join(tmpdir(), 'hanging-'))
    let id = ''
    await using bench = await setBench({
      deps: { createShells: realShells() },
      manager: { closeTimeoutMs: 5000, endProcesses: async () => markedProcesses(id).map(({ pid }) => pid) },
    })
    {
      await using hanging = await mountHangingFiles(directory)
      const conversation = await bench.converse()
      id = conversation.id
      await bench.create()
      conversation.exec.commands.run(RunCommand.parse({ command: `cat ${directory}/file` })).catch(() => {})
      await hanging.asked
      expect(await bench.manager.close()).toBe(false)
      const line = bench.logged.find((each) => each.includes('these conversations were not closed'))
      expect(JSON.parse(line!)).toMatchObject({ level: 50, count: 1, conversation_ids: [id] })
      expect(bench.logged.at(-1)).toContain('could not be ended: they wait in the kernel')
    }
    await expect.poll(() => markedProcesses(id)).toEqual([])
    await rm(directory, { recursive: true })
  },
)
