/** What a used skill or slash command of trusted files allows. */
import { describe, expect, test } from 'vitest'
import type { ProjectEntry, ProjectSettings } from '../../src/contract/project/project-settings.ts'
import type { EventOf } from '../../src/contract/events/event.ts'
import { findEntry, grantedByMessage, grantedByResult } from '../../src/state/used-entries.ts'

const entry = (name: string, ...allowed_tools: string[]): ProjectEntry =>
  ({ name, description: name, ...(allowed_tools.length > 0 && { allowed_tools }) }) as ProjectEntry

const settings = {
  skills: [entry('pdf', 'Read'), entry('team:lint', 'Bash(lint:*)'), entry('both', 'Grep'), entry('plain')],
  commands: [entry('review', 'Bash(git diff:*)'), entry('both', 'Glob'), entry('a:twice', 'X'), entry('b:twice', 'Y')],
} as unknown as ProjectSettings

const message = (name?: string) =>
  ({ ...(name !== undefined && { slash_command: { name } }) }) as EventOf<'UserMessage'>
const result = (is_error = false) => ({ tool_use_id: 'a', is_error }) as EventOf<'ToolResult'>
const allowing = (...allow: string[]) => ({ allow, ask: [], deny: [] })

function after(name: string, input: unknown, granted?: ReturnType<typeof allowing>, isError = false) {
  const openCalls = [
    { toolUseId: 'other', name: 'Skill', input: { skill: 'team:lint' } },
    { toolUseId: 'a', name, input },
  ]
  return grantedByResult({ settings: { project_settings: settings }, openCalls, granted }, result(isError))
}

describe('an entry is found', () => {
  test('by its name, or by the last part of one name only', () => {
    expect(findEntry(settings.skills, 'team:lint')?.name).toBe('team:lint')
    expect(findEntry(settings.skills, 'lint')?.name).toBe('team:lint')
    expect(findEntry(settings.skills, 'nt')).toBeUndefined()
    expect(findEntry(settings.commands, 'twice')).toBeUndefined()
  })
})

describe('a message', () => {
  test('that begins with a command allows what its file allows, and ends what was allowed before', () => {
    expect(grantedByMessage(settings, message('review'))).toEqual(allowing('Bash(git diff:*)'))
    expect(grantedByMessage(settings, message())).toBeUndefined()
    expect(grantedByMessage(undefined, message('review'))).toBeUndefined()
  })

  test('may name a skill; a command of the same name comes first', () => {
    expect(grantedByMessage(settings, message('pdf'))).toEqual(allowing('Read'))
    expect(grantedByMessage(settings, message('both'))).toEqual(allowing('Glob'))
    expect(grantedByMessage(settings, message('plain'))).toBeUndefined()
  })
})

describe('a call', () => {
  test('of Skill or SlashCommand adds what its file allows, once', () => {
    expect(after('Skill', { skill: 'pdf' })).toEqual(allowing('Read'))
    expect(after('Skill', { skill: 'pdf' }, allowing('Glob'))).toEqual(allowing('Glob', 'Read'))
    expect(after('Skill', { skill: 'pdf' }, allowing('Read'))).toEqual(allowing('Read'))
    expect(after('SlashCommand', { command: '/review src' })).toEqual(allowing('Bash(git diff:*)'))
    expect(after('SlashCommand', { command: '/pdf' })).toEqual(allowing('Read'))
  })

  test.each([
    ['that failed', 'Skill', { skill: 'pdf' }, true],
    ['of another tool', 'Bash', { skill: 'pdf' }, false],
    ['of no entry', 'Skill', { skill: 'gone' }, false],
    ['of a skill, with the field of a command', 'Skill', { command: '/review' }, false],
    ['of a command, with the field of a skill', 'SlashCommand', { skill: 'pdf' }, false],
    ['with a name that is no text', 'Skill', { skill: 7 }, false],
    ['whose text is no command', 'SlashCommand', { command: 'review' }, false],
    ['whose input is a text', 'Skill', 'pdf', false],
  ])('%s changes nothing', (_, name, input, isError) => {
    expect(after(name, input, allowing('Glob'), isError)).toEqual(allowing('Glob'))
    expect(after(name, input, undefined, isError)).toBeUndefined()
  })
})
