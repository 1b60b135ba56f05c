/** What the chat does for the person beside the conversation, in a real terminal with a real server. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Stage } from '../../support/agent.ts'
import { bash, setStage } from '../../support/agent.ts'
import { openChatOn, startChatOn } from './support/chat-on.ts'
import { KEYS } from './support/terminal.ts'

let stage: Stage
beforeAll(async () => {
  const replies = [
    { when: 'where', turns: [bash('echo "$PLACE in ${PWD##*/}"'), { text: 'There.' }] },
    { turns: [{ text: 'Hello.' }] },
  ]
  stage = await setStage({ replies })
})
afterAll(() => stage[Symbol.asyncDispose]())

describe.concurrent('a command after !', () => {
  test('runs in the shell of the agent, is shown, and is read by the model with the next message', async () => {
    await using terminal = await openChatOn(stage, { permission_mode: 'default' })
    await terminal.say('!mkdir sub; cd sub; export PLACE=here; echo made; false')
    await terminal.shows(/✗ ! mkdir sub.*\n {2}made\n {2}exit code 1/)
    await terminal.say('/permissions bypass')
    await terminal.say('where are we')
    await terminal.shows(/✓ Bash echo "\$PLACE in .*"\n {2}here in sub/)
    await terminal.shows('There.')
    const { text } = stage.model.requests.find((request) => request.text.includes('where are we'))!
    expect(text).toContain('<bash-input>mkdir sub; cd sub;')
    expect(text).toContain('<bash-stdout>made')
    await using later = startChatOn(stage, terminal.id)
    await later.shows(/✗ ! mkdir sub.*\n {2}made\n {2}exit code 1[\s\S]*There\./)
  })

  test('shows its output while it runs, and ends with Esc', async () => {
    await using terminal = await openChatOn(stage)
    await terminal.say('!echo begun; sleep 60')
    await terminal.shows(/• ! echo begun; sleep 60\n {2}begun/)
    terminal.press(KEYS.escape)
    await terminal.shows(/✗ ! echo begun; sleep 60/)
    await expect
      .poll(async () => (await stage.events(terminal.id, 'types=CommandResult')).map(({ status }) => status))
      .toEqual(['killed'])
    await terminal.say('hi')
    await terminal.shows('Hello.')
  })
})
