/** The events of a task: live and replayed they give a client the same task. */
import { assert, asyncProperty } from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { Access } from '../../../src/access/access.ts'
import type { Artifact, StreamEvent, A2aTask } from '../../../src/protocols/a2a/a2a-objects.ts'
import { listTasks } from '../../../src/protocols/a2a/list-tasks.ts'
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

test('a list reads a bounded number of tasks for a page, also if none fits, and shows no files', async () => {
  const conversation = await bench.converse()
  const image = { type: 'image' as const, media_type: 'image/png' as const, data: 'iVBORw0KGgo=' }
  const draft = { type: 'UserMessage', source: 'user', run: true } as const
  const text = { type: 'text' as const, text: 'go' }
  const contents = [image, ...Array.from({ length: 100 }, () => text)]
  await conversation.log.append(contents.map((part) => ({ ...draft, run_id: crypto.randomUUID(), content: [part] })))
  const list = async (params: object) =>
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what a list needs of a call
    await listTasks({
      deps: bench,
      access: Access.master(),
      params: { contextId: conversation.id, ...params },
    } as never)
  const first = await list({ status: 'TASK_STATE_FAILED' })
  expect([first.tasks, first.totalSize]).toEqual([[], 101])
  const { tasks, nextPageToken } = await list({ pageToken: first.nextPageToken, historyLength: 1 })
  expect([tasks[0]?.history?.[0]?.parts, nextPageToken]).toEqual([[{ text: '[image]' }], ''])
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
