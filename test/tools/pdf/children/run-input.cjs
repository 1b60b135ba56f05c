/** Runs its input as a program. */
// @ts-check
const { readFileSync } = require('node:fs')
const { Script } = require('node:vm')

globalThis.require = require
new Script(readFileSync(0, 'utf8')).runInThisContext()
