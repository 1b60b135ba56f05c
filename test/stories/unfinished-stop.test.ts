/** A stop of a server that cannot end everything: it takes as long as a stop may, and says what is left. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, inject, onTestFinished, test } from 'vitest'
import { setStage } from '../support/agent.ts'
import { canHangFiles, mountHangingFiles } from '../support/hanging-files.ts'
import { markedProcesses } from '../support/marked.ts'

test.runIf(canHangFiles)(
  'a process that the kernel does not end makes the exit code 1; it is named, and so is its conversation',
  async () => {
    const directory = await mkdtemp(join(tmpdir(), 'hanging-'))
    onTestFinished(() => rm(directory, { recursive: true }))
    await using stage = await setStage([{ text: 'Never asked.' }], {
      env: { OPENHANDS_ISOLATION: inject('isolation') },
    })
    const [id, other] = await Promise.all([stage.create(), stage.create()])
    {
      await using hanging = await mountHangingFiles(directory)
      const command = `cat ${directory}/file`
      stage.server.call('POST', `/conversations/${id}/commands`, { command }).catch(() => {})
      await hanging.asked
      expect(await stage.server.stop('SIGTERM')).toBe(1)
      const stuck = markedProcesses(id)
      expect(stuck).toMatchObject([{ state: 'D' }])
      const lines = stage.server.output().trim().split('\n')
      const saying = (text: string) => JSON.parse(lines.find((line) => line.includes(text))!)
      expect(saying('these conversations were not closed')).toMatchObject({ conversation_ids: [id] })
      expect(saying('processes of conversations could not be ended').pids).toEqual([stuck[0]!.pid])
      expect(stage.server.output()).not.toContain(`"conversation_ids":["${other}`)
    }
    await expect.poll(() => markedProcesses(id)).toEqual([])
  },
)
