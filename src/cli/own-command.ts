/** The command with which a person starts this program again, in the same directory or in any. */
import { realpathSync } from 'node:fs'
import { delimiter, isAbsolute, join, relative } from 'node:path'
import { isSea } from 'node:sea'
import { personalVariable } from '../config/environment.ts'
import { quote } from '../shell/bash-script.ts'

/** How this process was started. `script`: the source file; undefined in the executable. */
export type OwnProcess = {
  readonly argv0: string
  readonly execPath: string
  readonly script: string | undefined
  /** Undefined: the command has to work in any directory. */
  readonly cwd: string | undefined
  readonly path: string | undefined
}

const NAME = 'agent-server'

export const commandOfThisProcess = (): string => ownCommand(ownProcess(process.cwd()))

export const commandFromAnywhere = (): string => ownCommand(ownProcess(undefined))

const ownProcess = (cwd: string | undefined): OwnProcess => ({
  argv0: process.argv0,
  execPath: process.execPath,
  script: isSea() ? undefined : process.argv[1],
  cwd,
  path: personalVariable('PATH'),
})

/** The absolute words that start this program from any directory, as the settings of other programs need them. */
export const argumentsOfThisProcess = (): [string, ...string[]] =>
  isSea() ? [process.execPath] : [process.execPath, realPath(process.argv[1] ?? '') ?? '']

/** Returns its name if the shell finds this program by it, and otherwise where it is. */
export function ownCommand({ argv0, execPath, script, cwd, path = '' }: OwnProcess): string {
  const own = script ?? execPath
  if (realPath(own) !== undefined && firstOnPath(path) === realPath(own)) return NAME
  if (cwd === undefined) return script === undefined ? word(own) : `${word(execPath)} ${word(own)}`
  const place = word(shortest(own, cwd))
  return script === undefined ? place : `${word(argv0)} ${place}`
}

const word = (text: string): string => (/^[\w./-]+$/.test(text) ? text : quote(text))

/** Returns what a shell would run. */
const firstOnPath = (path: string): string | undefined =>
  path
    .split(delimiter)
    .filter((directory) => isAbsolute(directory))
    .map((directory) => realPath(join(directory, NAME)))
    .find((foundCommand) => foundCommand !== undefined)

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined // there is no such file
  }
}

function shortest(path: string, cwd: string): string {
  const short = relative(cwd, path)
  if (short.startsWith('..')) return path
  return short.includes('/') ? short : `./${short}`
}
