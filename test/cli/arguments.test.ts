import { describe, expect, test } from 'vitest'
import { readArguments } from '../../src/cli/command-line/read-arguments.ts'
import { UsageError } from '../../src/cli/command-line/usage-error.ts'

test.each([[['-v']], [['--version']], [['serve', '--version']]])('%j asks for the version', (args) => {
  expect(readArguments(args)).toEqual({ name: 'version' })
})

test.each([
  [['-h'], undefined],
  [['--help'], undefined],
  [['help'], undefined],
  [['serve', '-h'], 'serve'],
  [['help', 'sessions'], 'sessions'],
  [['-p', '--help'], 'chat'],
])('%j asks for help', (args, command) => {
  expect(readArguments(args)).toEqual({ name: 'help', command })
})

test('without a command a terminal gets the chat', () => {
  expect(readArguments([], { isTerminal: true })).toMatchObject({ name: 'chat', isHeadless: false, prompt: undefined })
})

test('on a terminal, several words as the first argument are the prompt of the chat; one word is a command', () => {
  const chat = { name: 'chat', isHeadless: false, prompt: 'fix the test' }
  expect(readArguments(['fix the test'], { isTerminal: true })).toMatchObject(chat)
  expect(() => readArguments(['fix'], { isTerminal: true })).toThrow('there is no command fix')
})

test.each([
  [['-p', 'serve', 'dinner'], 'serve dinner'],
  [['chat', '--no-tui', 'serve'], 'serve'],
  [['--print', '--', '-x'], '-x'],
])('in %j all words are the prompt', (args, prompt) => {
  expect(readArguments(args)).toMatchObject({ name: 'chat', isHeadless: true, prompt })
})

test('rules are separated by commas or blanks outside of parentheses', () => {
  const given = [
    '--allowed-tools',
    'Edit, Bash(a,b:*),Read',
    '--allowed-tools=Grep',
    '--disallowedTools',
    'Bash(a b) Task',
  ]
  expect(readArguments(['-p', ...given, 'hi'])).toMatchObject({
    allowedTools: ['Edit', 'Bash(a,b:*)', 'Read', 'Grep'],
    disallowedTools: ['Bash(a b)', 'Task'],
  })
})

test.each([
  ['--disallowedTools', 'Bash(git push:*)', 'Edit', 'hi'],
  ['--disallowed-tools=Bash', 'Write,Edit', 'hi'],
  ['--allowedTools', 'Read', 'mcp__issues__list'],
  ['hi', '--disallowedTools', 'Bash', 'NotebookEdit'],
])('a rule is not taken for a word of the prompt: %j', (...args) => {
  expect(() => readArguments(['-p', ...args])).toThrow(/is another rule; write --(dis)?allowed-tools '.+, .+', or --/)
})

test.each([
  [['--disallowedTools', 'Bash', 'hi'], 'hi'],
  [['--allowed-tools', 'Bash', 'Edit the file'], 'Edit the file'],
  [['--allowed-tools', 'Bash', '--', 'Edit'], 'Edit'],
])('a word is the prompt if it is not a rule, or comes after --: %j', (args, prompt) => {
  expect(readArguments(['-p', ...args])).toMatchObject({ prompt })
})

test('options are read in both forms', () => {
  expect(readArguments(['serve', '--port=8001', '--host', 'localhost', '--log-format', 'json'])).toEqual({
    name: 'serve',
    port: '8001',
    host: 'localhost',
    logFormat: 'json',
    generateKey: false,
    scriptedModel: false,
    stopWithStdin: false,
  })
  expect(readArguments(['scripted-model', '--port', '0', 'script.json'])).toEqual({
    name: 'scripted-model',
    port: '0',
    script: 'script.json',
  })
})

test.each([
  [['--max-turns', '5'], { maxSteps: 5 }],
  [['--max-turns=5'], { maxSteps: 5 }],
  [['--continue'], { resume: 'latest' }],
  [['--dangerously-skip-permissions'], { permissionMode: 'bypass' }],
  [['--permission-mode', 'acceptEdits'], { permissionMode: 'accept_edits' }],
  [['--permission-mode=bypassPermissions'], { permissionMode: 'bypass' }],
  [['--permission-mode', 'dontAsk'], { permissionMode: 'deny' }],
  [['--allowedTools', 'Edit'], { allowedTools: ['Edit'] }],
  [['--disallowedTools=Bash(a=b)'], { disallowedTools: ['Bash(a=b)'] }],
  [['--tools', ''], { settingTexts: { tools: [''] } }],
  [['--label', 'a, b', '--label', 'c'], { settingTexts: { labels: ['a, b', 'c'] } }],
  [['--', '--continue'], { prompt: '--continue hi', resume: undefined }],
])('%j means the same as in Claude Code', (args, expected) => {
  expect(readArguments(['-p', ...args, 'hi'])).toMatchObject(expected)
})

describe('one sentence reports', () => {
  test.each([
    ['an unknown option', ['serve', '--verbose'], 'there is no option --verbose.'],
    ['a misspelt option', ['serve', '--prot', '1'], 'there is no option --prot; did you mean --port?'],
    ['an unknown short option', ['serve', '-x'], 'there is no option -x.'],
    ['an option of another command', ['demo', '--port', '1'], 'demo has no option --port.'],
    ['a missing value', ['serve', '--port'], '--port needs a value.'],
    ['an option in place of a value', ['serve', '--port', '--generate-key'], '--port needs a value.'],
    ['a value too many', ['serve', '--generate-key=yes'], '--generate-key takes no value.'],
    ['a wrong port', ['serve', '--port', 'eighty'], '--port eighty is not a port; give a number from 0 to 65535.'],
    ['a port that is too high', ['serve', '--port', '65536'], /is not a port/],
    ['a wrong format', ['serve', '--log-format', 'xml'], '--log-format xml does not exist; use json or pretty.'],
    ['a misspelt command', ['sevre'], 'there is no command sevre; did you mean serve?'],
    [
      'an unknown command',
      ['constructor'],
      'there is no command constructor; a prompt of one word follows chat or -p.',
    ],
    ['a misspelt name of another agent', ['-p', '--max-turn', '3', 'hi'], 'did you mean --max-turns?'],
    ['no command', [], 'say what to do: chat, serve or demo.'],
    ['a prompt without -p', ['fix the tests'], 'there is no command fix the tests; put -p before a prompt.'],
    ['an option of the chat', ['serve', '--no-tui'], 'serve has no option --no-tui.'],
    ['a format without --no-tui', ['chat', '--output-format', 'json'], '--output-format needs --no-tui.'],
    ['answers that nobody can write', ['-p', '--ask', 'stdin', 'hi'], '--ask stdin needs --input-format stream-json'],
    ['a prune of everything', ['sessions', 'prune'], 'sessions prune needs --older-than, such as --older-than 30d.'],
    ['an age without a unit', ['sessions', 'prune', '--older-than', '30'], '--older-than 30 is not an age'],
    ['a rename without a title', ['sessions', 'rename', 'abcd'], 'sessions rename needs an ID and a title.'],
    [
      'an age for another action',
      ['sessions', 'list', '--older-than', '3d'],
      'sessions list has no option --older-than.',
    ],
    [
      'a prune of what is found, which would delete the others, too',
      ['sessions', 'prune', '--older-than', '3d', '--search', 'x'],
      'sessions prune has no option --search.',
    ],
    ['a directory for an ID', ['sessions', 'delete', 'abcd', '--cwd', '.'], 'sessions delete has no option --cwd.'],
    ['deltas without lines', ['-p', '--include-partial-messages', 'hi'], 'needs --output-format stream-json.'],
    ['answers in the chat', ['chat', '--ask', 'clients'], '--ask needs --no-tui.'],
    [
      'a wrong choice',
      ['-p', '--tool-choice', 'maybe', 'hi'],
      /--tool-choice maybe does not exist; use auto, .* or \w+\./,
    ],
    [
      'a prompt like an option',
      ['-p', '--plain'],
      'no option --plain; put -- before a prompt that begins with a dash.',
    ],
    ['a list without a model', ['-p', '--fallback-model', ' , ', 'hi'], '--fallback-model names no model.'],
    ['a list without a rule', ['-p', '--disallowed-tools', ' , ', 'hi'], '--disallowed-tools names no rule.'],
    ['no steps', ['-p', '--max-steps', '0', 'hi'], '--max-steps 0 is not a number from 1 to 100000.'],
    ['two conversations', ['-p', '-c', '-r', 'abc', 'hi'], 'use --resume or --autoresume, not both.'],
    ['an id that is none', ['-p', '--session-id', 'abc', 'hi'], '--session-id abc is not a UUID'],
    [
      'an id for a conversation that has one',
      ['-p', '-c', '--session-id', '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1', 'hi'],
      '--session-id names a new conversation',
    ],
    ['a deletion of what was there', ['-p', '-c', '--ephemeral', 'hi'], 'add --fork-session to work in a copy.'],
    ['a deletion at the end of a chat', ['chat', '--ephemeral'], '--ephemeral needs --no-tui.'],
    ['images of lines', ['-p', '--input-format', 'stream-json', '-i', 'a.png'], 'leave --image out.'],
    [
      'another directory',
      ['-p', '--include-directories', '/a', 'hi'],
      'no option --include-directories; use --add-dir',
    ],
    [
      'another address',
      ['-p', '--attach', 'http://localhost', 'hi'],
      'no option --attach; use agent-server connect URL.',
    ],
    ['a short option of another program', ['-p', '-C', '/a', 'hi'], 'no option -C; use --cwd.'],
    ['what needs no option', ['-p', '--include-hook-events', 'hi'], 'stream-json always has these events'],
    ['an option with another meaning', ['-p', '--yolo', 'hi'], 'no option --yolo; --permission-mode bypass asks'],
    ['more words', ['-p', '--verbose', 'hi'], 'no option --verbose; what the agent does is always on stderr.'],
    ['a copy of nothing', ['-p', '--fork-session', 'hi'], '--fork-session needs --resume or --autoresume.'],
    ['a rewind of nothing', ['-p', '--rewind', '7'], '--rewind needs --resume or --autoresume.'],
    ['a rewind with a prompt', ['-p', '-c', '--rewind', '7', 'hi'], '--rewind starts no run'],
    ['a dry run of nothing', ['-p', '-c', '--dry-run'], '--dry-run needs --rewind.'],
    ['force for nothing', ['-p', '-c', '--force', 'hi'], '--force needs --rewind.'],
    ['an empty value', ['-p', '--model', '', 'hi'], '--model needs a value.'],
    ['no address', ['connect'], 'connect needs the URL of a server.'],
    ['no URL', ['connect', 'localhost'], 'localhost is not a URL; write http:// or https:// and the host.'],
    ['nothing to do with conversations', ['sessions'], 'say what to do: list, show, export, rename, delete, prune.'],
    ['no id', ['sessions', 'show'], 'sessions show needs the ID of a conversation.'],
    ['an unknown shell', ['completion', 'tcsh'], 'there is no tcsh; name a shell: bash, zsh, fish.'],
    ['a word too many', ['serve', 'now'], 'now is one word too many.'],
  ])('%s', (_, args, sentence) => {
    expect(() => readArguments(args)).toThrow(UsageError)
    expect(() => readArguments(args)).toThrow(sentence)
  })
})
