/**
 * The program of the thread in which schemas are compiled and answers validated. The only file that knows the validator.
 *
 * Patterns and references can take forever: who has started this thread ends it after a time limit, also inside a regular
 * expression. A reference to another document is refused, not fetched. Plain JavaScript, like the program for PDFs.
 */
// @ts-check
import { parentPort } from 'node:worker_threads'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { ComplexJson, parseUntrustedJson } from '../../lib/json/untrusted-json.ts'

/**
 * @import { ValidateFunction } from 'ajv'
 * @import { SchemaAnswer, SchemaQuestion, Validation } from './schema-thread.ts'
 */

const MAX_FAULT_CHARS = 1000

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
  return attempt(() => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false, inlineRefs: false, logger: false })
    return ajv.compile(rest)
  })
}

/** @param {ValidateFunction} validate @param {string} text @returns {Validation} */
function check(validate, text) {
  const parsed = parse(text)
  if ('fault' in parsed) return parsed
  const checked = attempt(() => validate(parsed.value))
  if ('fault' in checked) return { fault: `checking it ${checked.fault}` }
  return checked.value ? parsed : { fault: tellErrors(validate) }
}

/**
 * @template T
 * @param {() => T} work
 * @returns {{ readonly value: T } | { readonly fault: string }}
 */
function attempt(work) {
  try {
    return { value: work() }
  } catch (error) {
    if (error instanceof RangeError) return { fault: 'is nested too deeply' }
    return { fault: `is not usable: ${error instanceof Error ? error.message.slice(0, MAX_FAULT_CHARS) : ''}` }
  }
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
