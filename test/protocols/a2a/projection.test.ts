/** The events of a task: live and replayed they give a client the same task. */
import { assert, asyncProperty } from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import type { Artifact, StreamEvent, A2aTask } from '../../../src/protocols/a2a/a2a-objects.ts'
import { projectionOf, readTask } from '../../../src/protocols/a2a/tasks.ts'
import { followTurn } from '../../../src/protocols/items/follow-turn.ts'
import { setTurnBench, turnScripts } from '../../support/turn-scripts.ts'

const bench = await setTurnBench()
afterAll(() => bench[Symbol.asyncDispose]())

test('property: a client that follows a task has what a client has that reads it', async () => {
  const conversation = await bench.converse({ tools: ['Bash'] })
  await assert(
    asyncProperty(turnScripts, async (turns) => {
      bench.play(turns)
      const { seq: start, run_id: runId } = await conversation.post({ message: 'go', run: true })
      const task = { conversation, start, runId }
      const follow = async () => {
        const projection = projectionOf(task)
        const events: StreamEvent[] = []
        for await (const step of followTurn(conversation.log, start, new AbortController().signal, Infinity))
          events.push(...projection.add(step))
        return { events, task: projection.task() }
      }
      const live = await follow()
      const replayed = await follow()
      const { projection } = await readTask(task)
      expect(replayed.task).toEqual(live.task)
      expect(projection.task()).toEqual(live.task)
      for (const { events } of [live, replayed]) expect(shown(events)).toEqual(shown([{ task: live.task }]))
    }),
    { numRuns: 15 },
  )
})

/** What a client keeps: the status, the messages and the artifacts that are not empty. */
function shown(events: readonly StreamEvent[]) {
  const artifacts = new Map<string, Artifact>()
  let status: A2aTask['status'] | undefined
  for (const event of events) {
    if ('task' in event) {
      status = event.task.status
      for (const artifact of event.task.artifacts ?? []) artifacts.set(artifact.artifactId, artifact)
    } else if ('statusUpdate' in event) ({ status } = event.statusUpdate)
    else {
      const { artifact, append = false } = event.artifactUpdate
      const before = append ? (artifacts.get(artifact.artifactId)?.parts ?? []) : []
      artifacts.set(artifact.artifactId, { ...artifact, parts: [...before, ...artifact.parts] })
    }
  }
  const texts = [...artifacts].map(([id, { parts }]) => [id, parts.map(({ text = '' }) => text).join('')] as const)
  return { status, texts: texts.filter(([, text]) => text !== '') }
}
