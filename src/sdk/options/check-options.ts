/**
 * Checks what a program passes before anything is sent: programs without types can pass anything, and a misspelt
 * `permissionMode` would run what it was to prevent. What the values mean is checked by the server.
 */
import { nearestName } from '../../contract/nearest-name.ts'
import { isSchema } from '../tools/schema.ts'
import { invalid } from '../errors/invalid.ts'
import { INSTEAD_OF_OPTION } from './other-names.ts'
import { toCamelCase } from './camel-case.ts'
import type { QueryOptions, SessionPlace } from './query-options.ts'
import type { SettingOptions, ValueType } from './setting-options.ts'
import { optionNameOf, PLAIN_SETTINGS, valueTypeOf } from './setting-options.ts'

/** A test, and what it accepts, for the message. */
export type OptionKind = readonly [fits: (value: unknown) => boolean, expected: string]

const isText = (value: unknown): value is string => typeof value === 'string'
const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isListOf = (fits: (each: unknown) => boolean) => (value: unknown) => Array.isArray(value) && value.every(fits)
const isTool = (value: unknown) => isRecord(value) && 'declaration' in value && typeof value['handler'] === 'function'
const isFunction = (value: unknown) => typeof value === 'function'

function isPrompt(value: unknown): boolean {
  return (
    isText(value) ||
    (typeof value === 'object' && value !== null && (Symbol.asyncIterator in value || 'content' in value))
  )
}

export const TEXT: OptionKind = [isText, 'a text']
export const NAME: OptionKind = [(value) => isText(value) && value !== '', 'a text that is not empty']
const TEXTS: OptionKind = [isListOf(isText), 'a list of texts']
export const NUMBER: OptionKind = [(value) => typeof value === 'number' && Number.isFinite(value), 'a number']
const FLAG: OptionKind = [(value) => typeof value === 'boolean', 'true or false']
const FUNCTION: OptionKind = [isFunction, 'a function']
export const RECORD: OptionKind = [isRecord, 'an object']
const RECORDS: OptionKind = [(value) => isRecord(value) && Object.values(value).every(isRecord), 'an object of objects']

const PLACE = {
  persistDir: NAME,
  server: [
    (value) => isRecord(value) && (isText(value['baseUrl']) || value['baseUrl'] instanceof URL),
    'an object with a baseUrl',
  ],
} satisfies Record<keyof SessionPlace, OptionKind>

const KIND_OF: Readonly<Record<ValueType, OptionKind>> = {
  string: TEXT,
  integer: NUMBER,
  number: NUMBER,
  boolean: FLAG,
  array: TEXTS,
  object: RECORD,
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an entry for each of these options
const SETTING_KINDS = Object.fromEntries(
  PLAIN_SETTINGS.map((setting) => [optionNameOf(setting), KIND_OF[valueTypeOf(setting)]]),
) as Readonly<Record<keyof SettingOptions, OptionKind>>

const OPTIONS: Readonly<Record<keyof QueryOptions, OptionKind>> = {
  ...PLACE,
  ...SETTING_KINDS,
  provider: TEXT,
  model: TEXT,
  apiKey: TEXT,
  baseUrl: TEXT,
  llm: RECORD,
  maxTurns: NUMBER,
  effort: TEXT,
  fallbackModel: NAME,
  outputFormat: [
    (value) => isRecord(value) && value['type'] === 'json_schema' && isRecord(value['schema']),
    "{ type: 'json_schema', schema }",
  ],
  forkSession: FLAG,
  resume: NAME,
  fork: [(value) => typeof value === 'boolean' || NAME[0](value), 'true, false or the id of a session'],
  continue: FLAG,
  sessionId: NAME,
  resumeSessionAt: [
    (value) => NAME[0](value) || (Number.isSafeInteger(value) && Number(value) > 0),
    'the id or the seq of an event',
  ],
  cwd: NAME,
  projectDir: NAME,
  additionalDirectories: TEXTS,
  settingSources: TEXTS,
  agents: RECORDS,
  mcpServers: RECORDS,
  systemPrompt: [
    (value) => isText(value) || (isRecord(value) && isText(value['append']) && Object.keys(value).length === 1),
    'a text, or { append } to add to the prompt of the server, which has no presets',
  ],
  tools: [
    (value) => isText(value) || isListOf((each) => isText(each) || isTool(each))(value),
    'the name of a preset, or a list of names and of tools that tool() made',
  ],
  allowedTools: TEXTS,
  disallowedTools: TEXTS,
  toolConfig: [
    (value) => isRecord(value) && Object.values(value).every((each) => each === undefined || isRecord(each)),
    'an object with the limits of each tool',
  ],
  permissionMode: TEXT,
  canUseTool: FUNCTION,
  answerQuestions: FUNCTION,
  interactiveApprover: [
    (value) => typeof value === 'boolean' || (isRecord(value) && isRecord(value['input']) && isRecord(value['output'])),
    'true, false, or { input, output }',
  ],
  hooks: RECORD,
  outputSchema: [
    (value) => isSchema(value) || (isRecord(value) && !('_def' in value)),
    'a schema of zod 4, or a JSON Schema',
  ],
  includePartialMessages: FLAG,
  abortController: [
    (value) => value instanceof AbortController || (isRecord(value) && value['signal'] instanceof AbortSignal),
    'an AbortController',
  ],
  conversation: RECORD,
}

/** The names for the test of docs/sdk.md. */
export const optionNames: readonly string[] = Object.keys(OPTIONS)

const REQUEST: Readonly<Record<string, OptionKind>> = {
  prompt: [isPrompt, 'a text, a message { content }, or an async iterable of them'],
  options: RECORD,
}

const namesSession = (options: unknown): boolean =>
  isRecord(options) && (isText(options['resume']) || isText(options['fork']) || options['continue'] === true)

const OPTION = 'option'

/** Throws an error that names the option. */
export function checkRequest(request: unknown): void {
  if (!isRecord(request)) throw invalid('Pass an object with the prompt: query({ prompt, options }).')
  check('field of a query', request, REQUEST)
  check(OPTION, request['options'], OPTIONS)
  if (request['prompt'] === undefined && !namesSession(request['options']))
    throw invalid('There is no prompt. Pass query({ prompt, options }); only resume and continue work without one.')
}

/** Checks a change of a query, where undefined is not a value. */
export function checkChange(name: 'model' | 'permissionMode' | 'mcpServers', value: unknown): void {
  const [fits, expectation] = name === 'model' ? NAME : OPTIONS[name]
  if (!fits(value)) throw invalid(`${name} must be ${expectation}.`)
}

export const checkPlace = (place: unknown): void => check('option of sessions()', place, PLACE)

/** Throws for what is not an object, a name that is not known, and a value of another kind. Undefined is absent. */
export function check(what: string, givenObject: unknown, kinds: Readonly<Record<string, OptionKind>>): void {
  if (givenObject === undefined) return
  if (!isRecord(givenObject)) throw invalid(`Each ${what} is a field of an object: { name: value }.`)
  for (const [name, value] of Object.entries(givenObject)) {
    const [fits, expectation] = (Object.hasOwn(kinds, name) ? kinds[name] : undefined) ?? refuseName(what, name, kinds)
    if (value !== undefined && !fits(value)) throw invalid(`${name} must be ${expectation}.`)
  }
}

function refuseName(what: string, name: string, kinds: object): never {
  if (what === OPTION && Object.hasOwn(INSTEAD_OF_OPTION, name))
    throw invalid(`There is no option ${name}. ${INSTEAD_OF_OPTION[name]}`)
  const knownNames = Object.keys(kinds)
  // The name may also be in the letters of the wire: max_steps.
  const nearest = nearestName(toCamelCase(name), knownNames)
  const hint = nearest === undefined ? `. They are ${knownNames.join(', ')}.` : `; did you mean ${nearest}?`
  throw invalid(`There is no ${what} ${name}${hint}`)
}
