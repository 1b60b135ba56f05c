import { describe, expect, test } from 'vitest'
import { readArguments, UsageError } from '../../src/cli/arguments.ts'

test.each([[['-v']], [['--version']], [['serve', '--version']]])('%j asks for the version', (args) => {
  expect(readArguments(args)).toEqual({ name: 'version' })
})

test.each([[['-h']], [['--help']], [['help']], [['serve', '-h']]])('%j asks for help', (args) => {
  expect(readArguments(args)).toEqual({ name: 'help' })
})

test('options are read in both forms', () => {
  expect(readArguments(['serve', '--port=8001', '--host', 'localhost', '--log-format', 'json'])).toEqual({
    name: 'serve',
    port: '8001',
    host: 'localhost',
    logFormat: 'json',
    generateKey: false,
    scriptedModel: false,
  })
  expect(readArguments(['scripted-model', '--port', '0', 'script.json'])).toEqual({
    name: 'scripted-model',
    port: '0',
    script: 'script.json',
  })
})

describe('one sentence reports', () => {
  test.each([
    ['an unknown option', ['serve', '--verbose'], 'there is no option --verbose.'],
    ['a misspelt option', ['serve', '--prot', '1'], 'there is no option --prot; did you mean --port?'],
    ['an unknown short option', ['serve', '-p'], 'there is no option -p.'],
    ['an option of another command', ['demo', '--port', '1'], 'demo has no option --port.'],
    ['a missing value', ['serve', '--port'], '--port needs a value.'],
    ['an option in place of a value', ['serve', '--port', '--generate-key'], '--port needs a value.'],
    ['a value too many', ['serve', '--generate-key=yes'], '--generate-key takes no value.'],
    ['a wrong port', ['serve', '--port', 'eighty'], '--port eighty is not a port; give a number from 0 to 65535.'],
    ['a port that is too high', ['serve', '--port', '65536'], /is not a port/],
    ['a wrong format', ['serve', '--log-format', 'xml'], '--log-format xml does not exist; use json or pretty.'],
    ['a misspelt command', ['sevre'], 'there is no command sevre; did you mean serve?'],
    ['an unknown command', ['constructor'], 'there is no command constructor.'],
    ['no command', [], 'say what to do: serve or demo.'],
    ['a word too many', ['serve', 'now'], 'now is one word too many.'],
  ])('%s', (_, args, sentence) => {
    expect(() => readArguments(args)).toThrow(UsageError)
    expect(() => readArguments(args)).toThrow(sentence)
  })
})
