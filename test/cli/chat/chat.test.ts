/** The chat in a real terminal, with a real server and a scripted model. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Stage } from '../../support/agent.ts'
import { bash, setStage } from '../../support/agent.ts'
import { until } from '../../support/until.ts'
import { openChatOn, startChatOn } from './support/chat-on.ts'
import { KEYS, Terminal } from './support/terminal.ts'
import { approve, requestsOf } from '../../stories/requests.ts'

const AGENT_SERVER = process.env['AGENT_SERVER_BIN']
  ? [process.env['AGENT_SERVER_BIN']]
  : [process.execPath, join(import.meta.dirname, '../../../src/main.ts')]

/** Sequences that would write to the clipboard, set the title, move the cursor and turn the text around. */
const EVIL_TEXT = '\x1b]52;c;ZXZpbA==\x07\x1b]0;owned\x07\x1b[2J\x1b[5A\x9b31mred\u202egnp.exe'
const EVIL = `printf '${EVIL_TEXT}'`

const option = (label: string) => ({ label, description: `About ${label}.` })
const QUESTIONS = {
  questions: [
    {
      question: 'Which database?',
      header: 'Database',
      options: [option('SQLite'), option('Postgres')],
      multiSelect: false,
    },
    {
      question: 'Which parts?',
      header: 'Parts',
      options: [option('Tests'), option('Docs'), option('Code')],
      multiSelect: true,
    },
    { question: 'Which name?', header: 'Name', options: [option('One'), option('Two')], multiSelect: false },
  ],
}

let stage: Stage
beforeAll(async () => {
  const edit = { command: 'str_replace', path: 'notes.txt', old_str: 'old line', new_str: 'new line' }
  const replies = [
    {
      when: 'sum',
      turns: [
        bash('echo $((6*7))'),
        { text: '**It** is `42`.\n\n| a | b |\n|---|---|\n| 1 | 2 |', chunk_delay_ms: 20 },
      ],
    },
    {
      when: 'wait',
      turns: [bash('for i in 1 2 3 4 5 6 7 8 9; do echo line $i; done; sleep 60; echo late'), { text: 'Waited.' }],
    },
    {
      when: 'steer',
      turns: [bash('touch begun; while [ ! -e go ]; do sleep 0.05; done'), { text: 'You said: be brief.' }],
    },
    { when: 'be brief', turns: [{ text: 'Brief it is.' }] },
    {
      when: 'four',
      turns: [
        bash('touch a'),
        bash('touch b'),
        bash('touch c'),
        bash('touch c'),
        bash('touch d'),
        { text: 'All four.' },
      ],
    },
    {
      when: 'edit',
      turns: [
        bash('printf "old line\\nsecond\\n" > notes.txt'),
        { calls: [{ name: 'FileEditor', arguments: edit }] },
        { text: 'Edited.' },
      ],
    },
    { when: 'evil', turns: [bash(EVIL), { text: `Done ${EVIL_TEXT}` }] },
    {
      when: 'long',
      turns: [bash(Array.from({ length: 80 }, (_, at) => `touch part${at + 1}`).join('\n')), { text: 'Long.' }],
    },
    {
      when: 'ask',
      turns: [{ calls: [{ name: 'AskUserQuestion', arguments: QUESTIONS }] }, { text: 'Thanks for the answers.' }],
    },
    { when: '你好', turns: [{ text: '你好，世界！這是一段很長的文字，用來測試寬字元在終端機裡的換行。🎉👩‍👩‍👧‍👦 done' }] },
    { turns: [{ text: 'Hello.' }] },
  ]
  stage = await setStage({ replies })
})
afterAll(() => stage[Symbol.asyncDispose]())

const open = (...more: [fields?: Record<string, unknown>, start?: Parameters<typeof startChatOn>[2]]) =>
  openChatOn(stage, ...more)
const start = (id: string) => startChatOn(stage, id)

const decisionsOf = async (id: string) =>
  (await stage.events(id, 'types=RequestAnswered'))
    .filter(({ kind }) => kind === 'permission')
    .flatMap(({ answer }) => answer.decisions)
    .map(({ behavior, updated_input }) => [behavior, updated_input?.command])

// Most of the time is that of starting programs.
describe.concurrent('the chat', () => {
  test('streams Markdown, shows a call compactly, and counts tokens and time', async () => {
    await using terminal = await open()
    await terminal.shows('commands run in a sandbox')
    await terminal.say('the sum please')
    await terminal.shows(/✓ Bash echo \$\(\(6\*7\)\)\n {2}42/)
    await terminal.shows('It is 42.')
    await terminal.shows(/│ 1 +│ 2 +│/)
    await terminal.shows(/scripted · [\d.]+k tokens · (?:\d+m )?\d+s/)
    expect(terminal.isColored).toBe(true)
    await terminal.say('/exit')
    expect(await terminal.ended()).toEqual({ exitCode: 0, isRestored: true })
    expect(terminal.text).toContain(`agent-server --resume ${terminal.id}`)
  })

  test('Esc interrupts a running command, whose output is shown live; a message continues', async () => {
    await using terminal = await open()
    await terminal.say('wait')
    await terminal.shows(/• Bash for i[\s\S]*… \d+ more lines[\s\S]*line 9/)
    expect(terminal.text).not.toContain('line 1\n')
    terminal.press(KEYS.ctrlO)
    await terminal.shows('line 1\n')
    terminal.press(KEYS.escape)
    await terminal.shows('Interrupted. A message continues')
    await terminal.say('hi')
    await terminal.shows('Hello.')
  })

  test('a message that is typed during a run steers it', async () => {
    await using terminal = await open()
    await terminal.say('steer me')
    await terminal.shows('• Bash touch begun')
    await terminal.say('be brief')
    await terminal.shows('1 message waits for the next step of the agent')
    await stage.server.call('PUT', `/conversations/${terminal.id}/files/go`, '', {
      'content-type': 'application/octet-stream',
    })
    await terminal.shows('Brief it is.')
    await terminal.hides('Esc interrupts')
    expect((await stage.events(terminal.id, 'types=Result')).length).toBe(1)
  })

  test('approvals are answered with y, n, e and a', async () => {
    await using terminal = await open({ permission_mode: 'default' })
    await terminal.say('four files')
    await terminal.shows(/\$ touch a[\s\S]*\[y\] yes {2}\[n\] no {2}\[a\] always {2}\[e\] edit/)
    terminal.press('y')
    await terminal.shows(/\$ touch b[\s\S]*\[n\]/)
    terminal.press('n')
    await terminal.shows(/\$ touch c\n +always allows: Bash\(touch c\)[\s\S]*\[a\]/)
    terminal.press('a')
    await terminal.shows('Allowed in this conversation from now on: Bash(touch c)')
    await terminal.shows(/\$ touch d[\s\S]*\[e\]/)
    terminal.press('e')
    await terminal.shows(/Enter runs it[\s\S]*─\n *touch d/)
    terminal.press('ee', KEYS.enter)
    await terminal.shows('All four.')
    expect(await decisionsOf(terminal.id)).toEqual([
      ['allow', undefined],
      ['deny', undefined],
      ['allow', undefined],
      ['allow', 'touch dee'],
    ])
    await terminal.shows('✗ Bash touch b')
    await terminal.shows('✓ Bash touch dee')
  })

  test('a key that is typed while a message is in the prompt answers nothing', async () => {
    await using terminal = await open({ permission_mode: 'default' })
    await terminal.say('four files')
    await terminal.shows('[y] yes')
    terminal.press('stay away')
    await terminal.shows(/─\n *stay away/)
    expect(await decisionsOf(terminal.id)).toEqual([])
    terminal.press(KEYS.enter)
    await terminal.shows('Hello.')
    expect(await decisionsOf(terminal.id)).toEqual([])
    expect(await stage.events(terminal.id, 'types=RequestClosed')).toMatchObject([
      { kind: 'permission', tool_use_ids: [expect.any(String)], reason: 'message' },
    ])
  })

  test('an edit is shown as a diff, and an approval that was given elsewhere is said', async () => {
    await using terminal = await open({ permission_mode: 'default' })
    await terminal.say('edit the notes')
    await terminal.shows('[y] yes')
    const { call } = stage.server
    const [pending] = await requestsOf(call, terminal.id, 'permission')
    await approve(call, terminal.id, pending.request_id)
    await terminal.shows('Bash was approved in another client.')
    await terminal.shows(/Allow FileEditor\?[\s\S]* {2}1 - old line\n {2}1 \+ new line[\s\S]*\[y\]/)
    terminal.press('y')
    await terminal.shows('Edited.')
    await terminal.shows(/✓ FileEditor str_replace .*notes.txt\n {2}1 - old line\n {2}1 \+ new line/)
  })

  test('control sequences of models and tools are not written, and are visible in an approval', async () => {
    await using terminal = await open({ permission_mode: 'default' })
    await terminal.say('evil')
    await terminal.shows('[y] yes')
    expect(terminal.text.replaceAll(/\s/g, '')).toMatch(/<U\+001B>\]52;c;ZXZpbA==<U\+0007>.*<U\+202E>gnp\.exe/)
    terminal.press('y')
    await terminal.shows('Done red<U+202E>gnp.exe')
    // oxlint-disable-next-line no-control-regex -- what must not be there
    expect(terminal.output).not.toMatch(/\x1b\]52|\x1b\]0;owned|\x9b|\u202e|\x1b\[5A\x1b\[31mred/)
  })

  test('a long approval says how much is hidden, and shows it page by page', async () => {
    await using terminal = await open({ permission_mode: 'default' }, { columns: 60, rows: 24 })
    await terminal.say('long')
    await terminal.shows(/Lines 1-\d+ of \d+, \d+ hidden[\s\S]*\[y\]/)
    await terminal.shows('touch part1\n')
    expect(terminal.text).not.toContain('touch part80')
    for (let page = 0; page < 12; page++) terminal.press(' ')
    await terminal.shows('touch part80')
    terminal.press('n')
    await terminal.shows('Long.')
  })

  test('questions are choices: one, several, or an own answer', async () => {
    await using terminal = await open({ tools: 'claude' })
    await terminal.say('ask me')
    await terminal.shows(/Database \(1 of 3\)[\s\S]*> 1\. SQLite[\s\S]*or type/)
    terminal.press(KEYS.down, KEYS.enter)
    await terminal.shows(/Parts \(2 of 3\)[\s\S]*\[ \] Tests[\s\S]*Space marks/)
    terminal.press(' ', '3', KEYS.enter)
    await terminal.shows(/Name \(3 of 3\)[\s\S]*or type/)
    await terminal.say('Three')
    await terminal.shows('Thanks for the answers.')
    const [{ kind, answer }] = await stage.events(terminal.id, 'types=RequestAnswered')
    expect(kind).toBe('question')
    expect(answer.answers).toEqual({
      'Which database?': ['Postgres'],
      'Which parts?': ['Tests', 'Code'],
      'Which name?': ['Three'],
    })
  })

  test('completes commands and files, pastes lines, remembers messages, and knows no unknown command', async () => {
    await using terminal = await open()
    terminal.press('/perm')
    await terminal.shows(/permissions +Shows the mode/)
    terminal.press(KEYS.tab, 'pl')
    await terminal.shows('→ plan')
    terminal.press(KEYS.tab, KEYS.enter)
    await terminal.shows('The permission mode is plan')
    await terminal.shows('mode plan')
    await terminal.say('/hepl')
    await terminal.shows('There is no command /hepl; did you mean /help?')
    for (const name of ['notes one.txt', 'other.txt'])
      await stage.server.call('PUT', `/conversations/${terminal.id}/files/${encodeURIComponent(name)}`, 'x', {
        'content-type': 'application/octet-stream',
      })
    terminal.press('@oth')
    await terminal.shows(/→ other.txt/)
    // Without the word that it completes, the list is gone: Enter sends.
    terminal.press(KEYS.ctrlU)
    await terminal.hides('→ other.txt')
    terminal.press('look at @not')
    await terminal.shows(/→ notes one.txt/)
    terminal.press(KEYS.tab)
    await terminal.shows('look at @"notes one.txt"')
    terminal.press('\x1b[200~first\x9b2J\r\nsecond\x1b[201~')
    await terminal.shows(/first\n *second/)
    terminal.press(KEYS.enter)
    await terminal.shows(/> look at @"notes one.txt" first\n {2}second/)
    // The whole answer, with its usage: before it the message could still be taken back.
    await terminal.shows(/Hello\.[\s\S]*[1-9][\d.]*k tokens/)
    terminal.press(KEYS.up)
    await terminal.shows(/─\n *look at @"notes one.txt" first/)
  })

  test('resumes a conversation, starts another one, and switches between them', async () => {
    const id = await stage.create({ title: 'the first one' })
    await stage.say(id, 'the sum please')
    await using terminal = start(id)
    await terminal.shows(/> the sum please[\s\S]*✓ Bash[\s\S]*It is 42\.[\s\S]*[1-9][\d.]*k tokens/)
    await terminal.say('/new')
    await terminal.until(() => !terminal.text.includes('It is 42.'), 'not to show the first conversation')
    await terminal.shows('0 tokens')
    await terminal.say('/rename the second one')
    await terminal.shows('The conversation is called the second one now.')
    await terminal.say('/add-dir /proc')
    await terminal.shows('The additional directory /proc is refused: it is in /proc')
    await terminal.say('/add-dir /usr/share')
    await terminal.shows('The agent works in /usr/share, too.')
    await terminal.say('/resume')
    await terminal.shows(/Which conversation\?[\s\S]*the first one[\s\S]*now · idle · \/\S+[\s\S]*Esc closes/)
    terminal.press(KEYS.escape)
    await terminal.hides('Which conversation?')
    // A weaker mode is not inherited unasked.
    await terminal.say('/permissions default')
    await terminal.shows('The permission mode is default')
    for (const key of [KEYS.enter, '2']) {
      await terminal.say(`/resume ${id.slice(-12)}`)
      await terminal.shows(
        /Continue the first one\?[\s\S]*It has the permission mode bypass: every call runs[\s\S]*Esc closes/,
      )
      expect(terminal.text).not.toContain('It is 42.')
      terminal.press(key)
      await terminal.hides('Continue the first one?')
    }
    await terminal.shows('It is 42.')
    await terminal.say('/resume nothing')
    await terminal.shows('There is no conversation nothing; /resume lists the latest ones.')
    await terminal.say('wait')
    await terminal.shows('• Bash for i')
    await terminal.say('/new')
    await terminal.shows(`The agent of the other conversation continues: /resume ${id}`)
  })

  test('Shift+Tab goes through the modes that ask, and never to bypass', async () => {
    await using terminal = await open({ permission_mode: 'bypass' })
    await terminal.shows('· mode bypass')
    for (const mode of ['default', 'accept_edits', 'plan', 'default', 'accept_edits']) {
      terminal.press(KEYS.shiftTab)
      if (mode === 'default') await terminal.hides('· mode')
      else await terminal.shows(`· mode ${mode}`)
      await until(`the mode ${mode}`, async () => {
        const { body } = await stage.server.call('GET', `/conversations/${terminal.id}`)
        return body.state.permission_mode === mode
      })
    }
  })

  test('/status, /cost, /tools, /model, /compact, /clear and /help answer', async () => {
    await using terminal = await open({}, { rows: 60 })
    await terminal.say('/status')
    await terminal.shows(new RegExp(`Conversation +${terminal.id}[\\s\\S]*Sandbox`))
    await terminal.say('/tools')
    await terminal.shows(/\d tools:[\s\S]* {2}Bash: /)
    await terminal.say('/model other-model')
    await terminal.shows('The model changed from scripted to other-model.')
    await terminal.shows('other-model · 0 tokens')
    await terminal.say('/cost')
    await terminal.shows('No tokens yet.')
    await terminal.say('/compact')
    await terminal.shows('Error: ')
    await terminal.say('/clear')
    await terminal.hides('No tokens yet.')
    await terminal.say('/help')
    await terminal.shows(/\/compact \[what to keep\][\s\S]*Ctrl\+O/)
  })

  test('works at 60 columns without colours, with wide characters, and after a resize', async () => {
    await using terminal = await open({}, { columns: 60, rows: 20, env: { NO_COLOR: '1' } })
    await terminal.say('你好')
    await terminal.shows('done')
    expect(terminal.text.replaceAll(/\s/g, '')).toContain(
      '你好，世界！這是一段很長的文字，用來測試寬字元在終端機裡的換行。',
    )
    expect(terminal.isColored).toBe(false)
    terminal.resize(30, 20)
    await terminal.until(() => terminal.lines.some((line) => line === '─'.repeat(30)), 'to be drawn with 30 columns')
    for (const [columns, rows] of [
      [8, 6],
      [2, 3],
      [1, 1],
    ] as const)
      terminal.resize(columns, rows)
    terminal.resize(100, 30)
    await terminal.until(() => terminal.lines.some((line) => line === '─'.repeat(100)), 'to be drawn with 100 columns')
    await terminal.say('hi')
    await terminal.shows('Hello.')
  })

  test('the terminal is as it was after signals, Ctrl+C and a crash', async () => {
    const id = await stage.create()
    await using bySignal = start(id)
    await using byHangUp = start(id)
    await using byKeys = start(id)
    await using byCrash = start(id)
    await Promise.all([bySignal, byHangUp, byKeys, byCrash].map((terminal) => terminal.shows('/help lists')))
    process.kill(bySignal.pid, 'SIGQUIT')
    process.kill(byHangUp.pid, 'SIGHUP')
    // The program of the tests throws.
    process.kill(byCrash.pid, 'SIGUSR2')
    byKeys.press('draft')
    await byKeys.shows('draft')
    byKeys.press(KEYS.ctrlC)
    await byKeys.hides('draft')
    byKeys.press(KEYS.ctrlC)
    await byKeys.shows('Ctrl+C again leaves the chat.')
    // It has forgotten the first one if this is two seconds later.
    byKeys.press(KEYS.ctrlC + KEYS.ctrlC)
    expect(await bySignal.ended()).toEqual({ exitCode: 131, isRestored: true })
    expect(await byHangUp.ended()).toEqual({ exitCode: 129, isRestored: true })
    expect(await byKeys.ended()).toEqual({ exitCode: 0, isRestored: true })
    expect(await byCrash.ended()).toEqual({ exitCode: 1, isRestored: true })
    expect(byCrash.text).toContain('crashed on purpose')
  })
})

test('agent-server chat runs the agents of this machine', async () => {
  const model = { LLM_MODEL: 'scripted', LLM_BASE_URL: stage.model.baseUrl, LLM_API_KEY: 'scripted-model-key' }
  const directory = join(stage.server.home, 'local')
  await using terminal = new Terminal([...AGENT_SERVER, 'chat'], { env: { ...model, OPENHANDS_DATA_DIR: directory } })
  await terminal.shows('/help lists')
  await terminal.shows(/commands run on this machine (in|without) a sandbox/)
  await terminal.say('hi')
  await terminal.shows('Hello.')
  terminal.press(KEYS.ctrlD)
  expect(await terminal.ended()).toEqual({ exitCode: 0, isRestored: true })
})

test('says that the connection is lost, keeps a message that is not sent, connects again, and sends it once', async () => {
  await using terminal = await open()
  await stage.server.stop('SIGKILL')
  await terminal.shows('The connection to the server is lost; connecting again.')
  await terminal.shows('not connected')
  await terminal.say('hi')
  // It may have given up by now.
  await terminal.until(() => /> hi[^]*sending…/.test(terminal.output), 'to have shown that it sends')
  await terminal.shows(/> hi\n {2}not sent[\s\S]*─\n *hi\n─/)
  await stage.server.restart('SIGKILL')
  await terminal.shows('Connected again.')
  terminal.press(KEYS.enter)
  await terminal.shows('Hello.')
  expect(terminal.text.match(/^> hi$/gm)).toHaveLength(1)
  expect(await stage.events(terminal.id, 'types=UserMessage')).toHaveLength(1)
})
