/** What the chat does for the person beside the conversation, in a real terminal with a real server. */
import { mkdtempDisposable, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ChatSettings } from '../../../src/cli/settings/chat-settings.ts'
import { EMPTY_STATE } from '../../../src/cli/chat/state/chat-state.ts'
import { TerminalSignals } from '../../../src/cli/chat/terminal-signals.ts'
import { until } from '../../support/until.ts'
import type { Stage } from '../../support/agent.ts'
import { bash, setStage } from '../../support/agent.ts'
import { openChatOn, startChatOn } from './support/chat-on.ts'
import { KEYS } from './support/terminal.ts'

const STORY = Array.from({ length: 40 }, (_, at) => `Line ${at} of it.`)

const HALF = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: STORY.slice(0, 4).join('\n\n') } }] })}\n\n`

let stage: Stage
beforeAll(async () => {
  const replies = [
    { when: 'where are', turns: [bash('echo "$PLACE in ${PWD##*/}"'), { text: 'There.' }] },
    { when: 'fence', turns: [bash("printf '```\\033[2J'"), { text: 'After.' }] },
    { when: 'slow', turns: [bash('while [ ! -e go ]; do sleep 0.05; done'), { text: 'Done.' }] },
    { when: 'change it', turns: [bash('touch changed'), { text: 'Changed.' }] },
    { when: 'half a story', turns: [{ raw: [HALF], hang: true }] },
    { when: 'a story', turns: [{ text: STORY.join('\n\n'), chunk_delay_ms: 10 }] },
    { turns: [{ text: 'Hello.', usage: { prompt_tokens: 900, completion_tokens: 100 } }] },
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
    await until('the command to be killed', async () => {
      const [ended] = await stage.events(terminal.id, 'types=CommandResult')
      return ended?.status === 'killed'
    })
    await terminal.say('hi')
    await terminal.shows('Hello.')
  })
})

test('the status line has the branch and the context that is used, and the terminal has a title', async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'k', context_window: 2000 }
  await using terminal = await openChatOn(stage, { title: 'a \x1b]0;title', llm_config })
  await terminal.say('!git init -qb trunk; mkdir sub')
  await terminal.shows('scripted · trunk · 0 tokens')
  await terminal.say('hi')
  await terminal.shows('· 1.0k tokens · context 50% ·')
  expect(terminal.output).toContain('\x1b]0;* a')
  terminal.press(KEYS.ctrlD)
  await terminal.ended()
  expect(terminal.output.split('\x1b[23;0t')).toHaveLength(2)
  await using silent = startChatOn(stage, terminal.id, { env: { CHAT_SETTINGS: '{"terminal_title": false}' } })
  await silent.shows('Hello.')
  expect(silent.output).not.toContain('\x1b]0;')
})

describe('a person who is not there is called', () => {
  const signalsOf = (notify: ChatSettings['notify'], absentAfterMs = 0) => {
    const written: string[] = []
    const write = (text: string) => written.push(text)
    const signals = new TerminalSignals({ settings: { notify, terminal_title: false }, write, absentAfterMs })
    return { signals, written }
  }
  const waiting = { ...EMPTY_STATE, title: 'x\x07\x1b[2J', status: 'waiting_for_confirmation', requests: [{}] } as never
  const ended = { ...EMPTY_STATE, title: 'x', lastRunMs: 5 } as never

  test('once when something waits, and when a run has ended', async () => {
    const { signals, written } = signalsOf('bell')
    signals.update(EMPTY_STATE)
    signals.update(waiting)
    await until('the first bell', () => Promise.resolve(written.length === 1))
    signals.update({ ...(waiting as object) } as never)
    signals.update(ended)
    await until('the second bell', () => Promise.resolve(written.length === 2))
    expect(written).toEqual(['\x07', '\x07'])
  })

  test('with a text if the terminal shows notifications, and not at all if that is off', async () => {
    const [osc9, off] = [signalsOf('osc9'), signalsOf('off')]
    off.signals.update(waiting)
    osc9.signals.update(waiting)
    await until('the notification', () => Promise.resolve(osc9.written.length === 1))
    expect([osc9.written, off.written]).toEqual([['\x1b]9;agent-server waits for you: x\x07'], []])
  })

  test('unless a key was pressed in the meantime', async () => {
    const [there, absent] = [signalsOf('bell', 50), signalsOf('bell', 60)]
    there.signals.update(waiting)
    absent.signals.update(waiting)
    there.signals.onKey()
    await until('the bell', () => Promise.resolve(absent.written.length === 1))
    expect(there.written).toEqual([])
  })
})

describe.concurrent('messages for the end of a run', () => {
  test('wait in the chat, are taken back with Up, and sent one after the other', async () => {
    await using terminal = await openChatOn(stage)
    await terminal.say('slow')
    await terminal.shows('• Bash while')
    for (const text of ['first of all', 'a wrong one']) {
      terminal.press(text)
      await terminal.shows(text)
      terminal.press(KEYS.altEnter)
      await terminal.shows(`queued: ${text}`)
    }
    terminal.press(KEYS.up)
    await terminal.hides('queued: a wrong one')
    await terminal.shows(/─\n *a wrong one/)
    terminal.press(KEYS.ctrlC)
    await terminal.hides('a wrong one')
    expect((await stage.events(terminal.id, 'types=UserMessage')).length).toBe(1)
    await stage.server.call('PUT', `/conversations/${terminal.id}/files/go`, '', {
      'content-type': 'application/octet-stream',
    })
    await terminal.shows(/Done\.[\s\S]*> first of all[\s\S]*Hello\./)
    expect(terminal.text).not.toContain('queued:')
  })

  test('that the agent has not read are taken back from the server with Up, and those that it has read are not', async () => {
    await using terminal = await openChatOn(stage)
    await terminal.say('slow')
    await terminal.shows('• Bash while')
    await terminal.say('a wrong turn')
    await terminal.shows('1 message waits for the next step of the agent')
    terminal.press(KEYS.up)
    await terminal.hides('1 message waits')
    await terminal.shows(/─\n *a wrong turn/)
    expect((await stage.events(terminal.id, 'types=MessageWithdrawn')).length).toBe(1)
    terminal.press(KEYS.ctrlC)
    await terminal.hides('a wrong turn')
    await stage.server.call('PUT', `/conversations/${terminal.id}/files/go`, '', {
      'content-type': 'application/octet-stream',
    })
    await terminal.shows('Done.')
    terminal.press(KEYS.up)
    await terminal.shows(/─\n *a wrong turn/)
    expect((await stage.events(terminal.id, 'types=MessageWithdrawn')).length).toBe(1)
  })

  test('are in the prompt again after Esc', async () => {
    await using terminal = await openChatOn(stage)
    await terminal.say('slow')
    await terminal.shows('• Bash while')
    terminal.press('for later')
    await terminal.shows('for later')
    terminal.press(KEYS.altEnter)
    await terminal.shows('queued: for later')
    terminal.press(KEYS.escape)
    await terminal.shows(/Interrupted[\s\S]*─\n *for later/)
    terminal.press(KEYS.ctrlC)
    await terminal.say('slow again')
    await terminal.shows(/Interrupted[\s\S]*• Bash while/)
    terminal.press('for this one')
    await terminal.shows('for this one')
    terminal.press(KEYS.altEnter)
    await terminal.shows('queued: for this one')
    await terminal.say('/new')
    await terminal.shows(/The agent of the other conversation continues[\s\S]*─\n *for this one/)
  })
})

describe.concurrent('a terminal that is used badly', () => {
  test('sends a paste of a megabyte whole, and once', async () => {
    await using terminal = await openChatOn(stage)
    const pasted = Array.from({ length: 100_000 }, (_, at) => `line ${at}`).join('\n')
    terminal.press(`\x1b[200~${pasted}\x1b[201~`)
    await terminal.shows('[paste #1 +100000 lines]')
    terminal.press(KEYS.enter)
    await terminal.shows('Hello.')
    const messages = await stage.events(terminal.id, 'types=UserMessage')
    expect(messages.map(({ content }) => content)).toEqual([[{ type: 'text', text: pasted }]])
  })

  test('shows each line of an answer once, also if it is resized to nothing while the agent writes', async () => {
    await using terminal = await openChatOn(stage)
    await terminal.say('a story')
    const sizes = [
      ['Line 3 of', 60, 20],
      ['Line 6 of', 20, 5],
      ['Line 9 of', 1, 1],
      ['', 100, 40],
    ] as const
    for (const [after, columns, rows] of sizes) {
      await terminal.shows(after)
      terminal.resize(columns, rows)
    }
    await terminal.shows(STORY.at(-1)!)
    const shown = () => terminal.lines.map((line) => line.trim()).filter((line) => STORY.includes(line))
    await terminal.until(() => shown().join() === STORY.join(), 'to have each line once')
  })
})

test.concurrent('Esc keeps the text that is on the screen, and the next request has it', async () => {
  await using terminal = await openChatOn(stage)
  await terminal.say('half a story')
  await terminal.shows('Line 3 of it.')
  terminal.press(KEYS.escape)
  await terminal.shows('Interrupted. A message continues the conversation.')
  await terminal.say('hi again')
  await terminal.shows('Hello.')
  const { text } = stage.model.requests.findLast((each) => each.text.includes('hi again'))!
  expect(text).toContain('Line 3 of it.')
  expect(terminal.text.match(/Line 3 of it/g)).toHaveLength(1)
  // What is on the screen is stored afterwards.
  const partials = async () => (await stage.events(terminal.id, 'types=AssistantMessage')).map(({ partial }) => partial)
  await until('the second answer', async () => (await partials()).length === 2)
  expect(await partials()).toEqual([true, undefined])
})

describe.concurrent('commands', () => {
  test('/export writes the conversation, /copy the last answer to the clipboard, and /fork continues a copy', async () => {
    await using directory = await mkdtempDisposable(join(tmpdir(), 'chat-person-'))
    await using terminal = await openChatOn(stage, { title: 'the first' }, { cwd: directory.path })
    await terminal.say('/copy')
    await terminal.shows('There is no answer to copy yet.')
    await terminal.say('fence')
    await terminal.shows('After.')
    // What is on the screen is an answer when it is stored.
    await terminal.hides('Esc interrupts')
    await terminal.say('/copy')
    await terminal.shows('was sent to the clipboard')
    expect(terminal.output).toContain(`\x1b]52;c;${Buffer.from('After.').toString('base64')}\x07`)
    await terminal.say('/export notes.md')
    await terminal.shows(/The conversation was written to\s+[\S\n]*notes\.md/)
    const text = await readFile(join(directory.path, 'notes.md'), 'utf8')
    expect(text).toMatch(/^# the first\n\n## User\n\nfence\n\n### Bash\n\n````json\n[\s\S]*## Agent\n\nAfter\.\n$/)
    // oxlint-disable-next-line no-control-regex -- what must not be there
    expect(text).not.toMatch(/[\0-\x08\x0b-\x1f\x7f-\x9f]/)
    await terminal.say('/export notes.md')
    await terminal.shows('exists already; give another name')
    await terminal.say('/export missing/notes.md')
    await terminal.shows(/cannot\s+be\s+written\s+\(ENOENT\);/)
    await terminal.say('/fork the copy')
    await terminal.shows('forked from')
    await terminal.say('hi')
    await terminal.shows('Hello.')
    const { items } = (await stage.server.call('GET', '/conversations?limit=100')).body
    expect(items.find(({ title }: { title: string }) => title === 'the copy').workdir).toBe(
      (await stage.server.call('GET', `/conversations/${terminal.id}`)).body.workdir,
    )
  })

  test('Ctrl+G opens the prompt in the editor of the person, which has the terminal', async () => {
    const VISUAL = `sh -c 'stty -a | grep -o " icanon"; echo in the editor; printf "\\nmore\\033[2J" >> "$0"'`
    await using terminal = await openChatOn(stage, {}, { env: { VISUAL } })
    terminal.press('a draft')
    await terminal.shows('a draft')
    terminal.press(KEYS.ctrlG)
    await terminal.shows(/icanon\n*in the editor[\s\S]*─\n *a draft\n *more\n─/)
    terminal.press(KEYS.enter)
    await terminal.shows(/> a draft\n {2}more\n[\s\S]*Hello\./)
    const waiting = { VISUAL: `sh -c 'trap "echo caught" INT; echo begun; read line'` }
    await using interrupted = await openChatOn(stage, {}, { env: waiting })
    interrupted.press(KEYS.ctrlG)
    await interrupted.shows('begun')
    interrupted.press(KEYS.ctrlC)
    await interrupted.shows('caught')
    interrupted.press(KEYS.enter)
    await interrupted.until(() => interrupted.output.split('\x1b[22;0t').length === 3, 'to be drawn again')
    await interrupted.say('hi')
    await interrupted.shows('Hello.')
    await using broken = await openChatOn(stage, {}, { env: { VISUAL: 'false' } })
    await broken.say('/editor')
    await broken.shows('The editor (false) failed; set VISUAL or EDITOR')
  })

  test('a long text of the editor replaces the prompt, which stays if the editor leaves no file', async () => {
    const VISUAL = `sh -c 'seq 1 2000 > "$0"'`
    await using terminal = await openChatOn(stage, {}, { env: { VISUAL } })
    terminal.press('a draft', KEYS.ctrlG)
    await terminal.shows(/─\n *\[paste #1 \+2000 lines\]\n─/)
    terminal.press(KEYS.enter)
    await terminal.shows(/> 1\n {2}2\n[\s\S]*Hello\./)
    for (const [end, why] of [
      ['rm', 'ENOENT'],
      ['truncate -s 2M', 'it is larger than 1 MiB'],
    ] as const) {
      await using left = await openChatOn(stage, {}, { env: { VISUAL: end } })
      left.press('a draft', KEYS.ctrlG)
      await left.shows(`left no text (${why}); the prompt is unchanged.`)
      await left.shows(/─\n *a draft\n─/)
    }
  })

  test('/new says that the other conversation waits, if a call of it needs an approval', async () => {
    await using terminal = await openChatOn(stage, { permission_mode: 'default' })
    await terminal.say('change it')
    await terminal.shows('Allow Bash?')
    await terminal.say('/new')
    await terminal.shows(/The agent of the other conversation waits for an answer: \/resume/)
  })

  test('/status has the title that /rename gave, and /permissions warns of a mode that asks less', async () => {
    await using terminal = await openChatOn(stage)
    await terminal.say('/rename')
    await terminal.shows('/rename TITLE')
    await terminal.say('/rename The second')
    await terminal.shows('is called The second now')
    await terminal.say('/status')
    await terminal.shows(/Title +The second/)
    await terminal.say('/permissions accept_edits')
    await terminal.shows('! Warning: permission mode accept_edits: files are changed without asking.')
  })

  test('/model offers the models of the settings', async () => {
    const CHAT_SETTINGS = JSON.stringify({ models: ['one\x1b[2J', 'two'] })
    await using terminal = await openChatOn(stage, {}, { env: { CHAT_SETTINGS } })
    await terminal.say('/model')
    await terminal.shows(
      /Which model\?[\s\S]*> 1\. scripted\n {2}2\. one\n {2}3\. two[\s\S]*Enter or a number chooses it/,
    )
    terminal.press('3')
    await terminal.shows('The model changed from scripted to two.')
    await terminal.say('/model two')
    await terminal.shows('The model is two.')
    expect(terminal.text.split('The model is two.')).toHaveLength(2)
    await terminal.shows('two · 0 tokens')
  })

  test('/mcp, /init and /theme answer', async () => {
    await using terminal = await openChatOn(stage)
    await terminal.say('/mcp')
    await terminal.shows('There are no MCP servers.')
    await terminal.say('/theme dark')
    await terminal.shows('There is no theme dark; use default, bright, plain.')
    await terminal.say('/theme plain')
    await terminal.shows('The theme is plain, in this chat.')
    await terminal.say('/init')
    await terminal.shows(/> Look at this project and write AGENTS\.md[\s\S]*Hello\./)
  })
})
