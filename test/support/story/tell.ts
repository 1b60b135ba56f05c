/** The one story: tool calls, approvals, a question, a subagent, interrupts, a kill, and what comes after it. */
import { access, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Event } from '../../../src/contract/events/event.ts'
import type { ScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { until } from '../until.ts'
import type { Entrance } from './entrance.ts'
import { ANSWERS, ASKED, ENDLESS, FILES, REASON, SAID } from './script.ts'

/** Returns the log. */
export async function tellStory(entrance: Entrance, model: ScriptedModel): Promise<Event[]> {
  await entrance.open()
  await work(entrance)
  await interrupts(entrance, model)
  await killed(entrance)
  return await entrance.events()
}

async function work(entrance: Entrance): Promise<void> {
  await entrance.say(SAID.begin)
  await entrance.approve(ASKED[0])
  await entrance.reject(ASKED[1], REASON)
  await entrance.answer(ANSWERS[1])
  await entrance.approve(ASKED[2])
  await entrance.ended('Done: ')
  for (const [name, text] of Object.entries(FILES))
    expect(await readFile(join(entrance.place, name), 'utf8'), `${name} of ${entrance.name}`).toBe(text)
}

async function interrupts(entrance: Entrance, model: ScriptedModel): Promise<void> {
  await entrance.say(SAID.talk)
  await until('the model is asked', async () => model.requests.some((each) => each.text.includes(SAID.talk)))
  await entrance.sees(ENDLESS)
  await entrance.interrupt()
  await entrance.ended()
  await entrance.say(SAID.hang)
  await hangs(entrance.place)
  await entrance.interrupt()
  await entrance.ended()
}

/** Nobody has to say anything: the call that waits is asked about again, and the run continues. Returns the log. */
export async function tellKilledWhileAsking(entrance: Entrance): Promise<Event[]> {
  await entrance.open()
  await entrance.say(SAID.ask)
  await entrance.asks(ASKED[3])
  await entrance.kill(true)
  await entrance.approve(ASKED[3])
  await entrance.ended('Asked: ')
  expect(await readFile(join(entrance.place, 'late.txt'), 'utf8'), `late.txt of ${entrance.name}`).toBe('four\n')
  return await entrance.events()
}

async function killed(entrance: Entrance): Promise<void> {
  await entrance.say(SAID.hangLonger)
  await hangs(entrance.place)
  await entrance.kill(false)
  await entrance.say(SAID.again)
  await entrance.ended('Over: ')
}

/** The command has begun. The file is removed, so that the next one can be seen. */
async function hangs(place: string): Promise<void> {
  const path = join(place, 'started')
  const exists = () =>
    access(path).then(
      () => true,
      () => false,
    )
  await until(`${path} exists`, exists)
  await rm(path)
}
