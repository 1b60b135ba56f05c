import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Event } from '../../src/contract/events/event.ts'
import { bash, setStage } from '../support/agent.ts'

const call = (name: string, args: object) => ({ calls: [{ name, arguments: args as Record<string, unknown> }] })
const edit = (command: string, path: string, more: object = {}) => call('FileEditor', { command, path, ...more })

const resultsOf = (events: any[]) => events.filter((event) => event.type === 'ToolResult') // eslint-disable-line typescript/no-explicit-any
const toolText = (request: { body: { messages: readonly { role: string; content?: unknown }[] } } | undefined) =>
  String(request?.body.messages.findLast((message) => message.role === 'tool')?.content)

test('an agent makes a file, views it, edits it while the shell runs, and undoes an edit after a restart', async () => {
  await using stage = await setStage([
    edit('create', 'src/hello.py', { file_text: 'def hello():\n    print("helo")\n' }),
    edit('str_replace', 'src/hello.py', { old_str: 'helo', new_str: 'hello', file_text: null, view_range: null }),
    edit('insert', 'src/hello.py', { insert_line: 2, new_str: '\nhello()' }),
    edit('view', 'src/hello.py', { view_range: [1, -1] }),
    bash('cat src/hello.py'),
    { text: 'It says hello.' },
    edit('undo_edit', 'src/hello.py'),
    { text: 'Taken back.' },
  ])
  const id = await stage.create()
  const { body: conversation } = await stage.server.call('GET', `/conversations/${id}`)
  expect(conversation.tools).toEqual(['Bash', 'FileEditor', 'TaskTracker'])
  const file = join(conversation.workdir, 'src/hello.py')

  const events = await stage.say(id, 'greet')
  expect(resultsOf(events).map((result) => result.error_message)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ])
  const whole = 'def hello():\n    print("hello")\n\nhello()\n'
  expect(resultsOf(events).at(-1).output).toMatchObject({ stdout: whole })
  expect(toolText(stage.model.requests[4])).toBe(
    `Here's the result of running \`cat -n\` on ${file}:\n     1\tdef hello():\n     2\t    print("hello")\n     3\t\n     4\thello()\n`,
  )
  for (const event of await stage.events(id)) expect(Event.safeParse(event).error).toBeUndefined()

  await stage.server.restart('SIGKILL')
  await stage.say(id, 'take the last one back')
  expect(await readFile(file, 'utf8')).toBe('def hello():\n    print("hello")\n')
})

test('the model sees an image that it views, and every request extends the one before', async () => {
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  await using stage = await setStage([
    bash(`echo ${png} | base64 -d > dot.png`),
    { calls: [...edit('view', 'dot.png').calls, ...bash('echo beside').calls] },
    { text: 'A dot.' },
    { text: 'Still a dot.' },
  ])
  const id = await stage.create()
  const events = await stage.say(id, 'look')
  expect(resultsOf(events)[1].output[1]).toEqual({ type: 'image', media_type: 'image/png', data: png })
  const messages = stage.model.requests[2]!.body.messages
  expect(messages.map((message) => message.role)).toEqual([
    'system',
    'user',
    'assistant',
    'tool',
    'assistant',
    'tool',
    'tool',
    'user',
  ])
  expect(messages.at(-1)!.content).toEqual([
    { type: 'text', text: expect.any(String) },
    { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
  ])

  await stage.server.restart()
  await stage.say(id, 'and now?')
  expect(JSON.stringify(stage.model.requests[3]!.body.messages)).toContain(JSON.stringify(messages).slice(0, -1))
})

test('the editor shows nothing of the server: not its data, its key, nor its environment', async () => {
  const paths = ['../../master-key', '../../lock.db', '../../sessions', 'link/master-key', '/proc/self/environ']
  await using stage = await setStage([
    bash('ln -s ../.. link'),
    ...paths.map((path) => edit('view', path)),
    edit('create', '../../sessions/x', { file_text: 'x' }),
    { text: 'No.' },
  ])
  const id = await stage.create({})
  const results = resultsOf(await stage.say(id, 'steal')).slice(1)
  expect(results.map((result) => result.error_type)).toEqual(Array.from({ length: paths.length + 1 }, () => 'denied'))
  await expect(stat(join(stage.server.dataDir, 'sessions/x'))).rejects.toThrow('ENOENT')
})

test('the whole of a long output is viewed where the result says it is', async () => {
  await using stage = await setStage((question) => {
    const path = /\/\S*\/outputs\/\S*stdout-[\w.-]+\w/.exec(toolText({ body: question.body }))?.[0]
    if (path) return edit('view', path, { view_range: [19_999, 20_000] })
    return question.body.messages.some(
      (message) => message.role === 'tool' && String(message.content).includes('cat -n'),
    )
      ? { text: 'Seen.' }
      : bash('seq 20000')
  })
  const id = await stage.create({})
  const [shell, view] = resultsOf(await stage.say(id, 'count'))
  expect(shell.full_output_path).toMatch(/outputs/)
  expect(view).toMatchObject({ is_error: false, output: expect.stringContaining(' 20000\t20000\n') })
})

test('the task list is in the log: it is there after a `kill -9`', async () => {
  const task_list = [
    { title: 'first', status: 'done' },
    { title: 'second', notes: 'with care', status: 'in_progress' },
  ]
  await using stage = await setStage([
    call('TaskTracker', { command: 'plan', task_list }),
    { text: 'Planned.' },
    call('TaskTracker', { command: 'view' }),
    { text: 'Seen.' },
  ])
  const id = await stage.create({ tools: ['TaskTrackerTool'] })
  await stage.say(id, 'plan')
  await stage.server.restart('SIGKILL')
  const [view] = resultsOf(await stage.say(id, 'what is left?'))
  expect(view).toMatchObject({ is_error: false, output: { task_list } })
  expect(toolText(stage.model.requests.at(-1))).toBe(
    'Task list (1 of 2 done):\n1. [x] first\n2. [>] second\n   with care',
  )
})

describe('Finish', () => {
  test('ends the run as finished, with its message as the final text', async () => {
    await using stage = await setStage([
      { text: 'Nearly.', calls: [...bash('echo 1').calls, ...call('Finish', { message: 'All is done.' }).calls] },
      { text: 'Yes?' },
    ])
    const id = await stage.create({ tools: ['Bash', 'Finish'] })
    const events = await stage.say(id, 'do it')
    expect(events.find((event) => event.type === 'Result')).toMatchObject({
      stop_reason: 'finished',
      final_text: 'All is done.',
      steps: 1,
    })
    expect(events.at(-1)).toMatchObject({ type: 'StatusUpdate', status: 'finished', reason: 'finished' })
    expect((await stage.server.call('GET', `/conversations/${id}`)).body).toMatchObject({
      status: 'finished',
      state: { agent_finished: true },
    })
    expect(stage.model.requests).toHaveLength(1)

    await stage.server.restart('SIGKILL')
    expect((await stage.server.call('GET', `/conversations/${id}`)).body).toMatchObject({
      status: 'finished',
      state: { agent_finished: true },
    })
    expect((await stage.say(id, 'are you there?')).find((event) => event.type === 'Result')).toMatchObject({
      stop_reason: 'completed',
      final_text: 'Yes?',
    })
  })
})

test('tools may be named as other servers name them; the conversation tells their names here', async () => {
  await using stage = await setStage([call('Think', { thought: 'hm' }), { text: 'Thought.' }])
  const id = await stage.create({
    tools: [
      'execute_bash',
      'BashTool',
      'file_editor',
      'FileEditorTool',
      'str_replace_editor',
      'TaskTrackerTool',
      'ThinkTool',
    ],
  })
  const [init] = await stage.events(id)
  expect(init.enabled_tools).toEqual(['Bash', 'FileEditor', 'TaskTracker', 'Think'])
  expect(resultsOf(await stage.say(id, 'think'))).toMatchObject([{ is_error: false }])
  const offered = stage.model.requests[0]!.body['tools'] as { function: { name: string } }[]
  expect(offered.map((tool) => tool.function.name)).toEqual(init.enabled_tools)
  expect((await stage.server.call('POST', '/conversations', { tools: ['Telepathy'] })).status).toBe(400)
})
