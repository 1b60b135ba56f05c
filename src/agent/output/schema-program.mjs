/**
 * The program of the thread in which schemas are compiled and answers validated. The only file that knows the validator.
 *
 * Patterns and references can take forever: compiling and validating are ended after a time limit, also inside a regular
 * expression. A reference to another document is refused, not fetched. Plain JavaScript, like the program for PDFs.
 */
// @ts-check
import vm from 'node:vm'
import { parentPort } from 'node:worker_threads'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { ComplexJson, parseUntrustedJson } from '../../lib/json/untrusted-json.ts'

/**
 * @import { ValidateFunction } from 'ajv'
 * @import { SchemaAnswer, SchemaQuestion, Validation } from './schema-thread.ts'
 */

/** CPU time in milliseconds. Ordinary schemas take 50 the first time. */
const TIME_LIMIT_MS = 400

/** On a busy machine, most of the time passes without work: then it is tried again with twice the time. */
const MAX_TRIES = 4

const MAX_FAULT_CHARS = 1000

const call = new vm.Script('work()')

parentPort?.on('message', (/** @type {SchemaQuestion} */ question) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  parentPort?.postMessage(answer(question))
})

/** @param {SchemaQuestion} question @returns {SchemaAnswer} */
function answer({ schema, text }) {
  const compiled = compile(schema)
  if (text === undefined) return 'fault' in compiled ? compiled : { value: undefined }
  return 'fault' in compiled ? { fault: `the schema ${compiled.fault}` } : check(compiled.value, text)
}

/** @param {SchemaQuestion['schema']} schema */
function compile(schema) {
  // The schema of the schema itself is not needed, and other drafts would be refused.
  const { $schema: _, ...rest } = schema
  return withinTime(() => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false, inlineRefs: false, logger: false })
    return ajv.compile(rest)
  })
}

/** @param {ValidateFunction} validate @param {string} text @returns {Validation} */
function check(validate, text) {
  const parsed = parse(text)
  if ('fault' in parsed) return parsed
  const checked = withinTime(() => validate(parsed.value))
  if ('fault' in checked) return { fault: `checking it ${checked.fault}` }
  return checked.value ? parsed : { fault: tellErrors(validate) }
}

/**
 * `vm` ends the work of this thread after the time limit, whatever code it is in.
 * @template T
 * @param {() => T} work
 * @returns {{ readonly value: T } | { readonly fault: string }}
 */
function withinTime(work) {
  const before = cpuMs()
  for (let tries = 0; ; tries++) {
    try {
      const timeout = TIME_LIMIT_MS * 2 ** tries
      return { value: call.runInContext(vm.createContext({ work }), { timeout }) }
    } catch (error) {
      if (error instanceof RangeError) return { fault: 'is nested too deeply' }
      if (error instanceof Error) return { fault: `is not usable: ${error.message.slice(0, MAX_FAULT_CHARS)}` }
      // The error of the time limit belongs to the other context, and is not an instance of our class.
      if (cpuMs() - before > TIME_LIMIT_MS / 2 || tries === MAX_TRIES) return { fault: 'takes too long' }
    }
  }
}

function cpuMs() {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** @param {string} text @returns {Validation} */
function parse(text) {
  try {
    return { value: parseUntrustedJson(withoutCodeBlock(text)) }
  } catch (error) {
    if (error instanceof ComplexJson) return { fault: `it ${error.message}` }
    return { fault: `it is not JSON: ${error instanceof Error ? error.message.slice(0, MAX_FAULT_CHARS) : ''}` }
  }
}

/**
 * Models like to put JSON into a code block. No pattern: a long run of spaces would take quadratic time.
 * @param {string} text
 */
function withoutCodeBlock(text) {
  const block = text.trim()
  const firstLine = block.slice(0, block.indexOf('\n') + 1).trim()
  const isBlock = /^```(json)?$/i.test(firstLine) && block.endsWith('```')
  return isBlock ? block.slice(block.indexOf('\n') + 1, -3) : text
}

/** @param {ValidateFunction} validate */
function tellErrors({ errors }) {
  const all = (errors ?? []).slice(0, 5).map(({ instancePath, message }) => `${instancePath || 'the value'} ${message}`)
  return all.join('; ').slice(0, MAX_FAULT_CHARS)
}
