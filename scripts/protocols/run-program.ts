/** Runs the program of one client, and reads the result of each of its cases. */
import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { execa } from 'execa'
import { z } from 'zod'
import type { Environment } from '../clients/toolchains.ts'

/** `fault` is undefined if the case has passed. */
export type CaseResult = { readonly case: string; readonly fault?: string | undefined }

export type ProgramPlace = {
  /** Variables with the server and its key, and the path of the toolchain. */
  readonly env: Environment
  /** The directory with the `node_modules` or the virtual environment; undefined for packages of this project. */
  readonly directory: string | undefined
  readonly work: string
}

const PROGRAMS = join(import.meta.dirname, 'programs')
const RUN_MS = 4 * 60_000
const MAX_FAULT_CHARACTERS = 3000
const Line = z.object({ case: z.string(), fault: z.string().nullish() })

/** A program that ends early, or says nothing, is a case that fails. */
export async function runProgram(file: string, { env, directory, work }: ProgramPlace): Promise<CaseResult[]> {
  const path =
    directory !== undefined && file.endsWith('.mjs') ? besideModules(file, directory, work) : join(PROGRAMS, file)
  const command = file.endsWith('.py') ? 'python' : process.execPath
  const { stdout, stderr, exitCode } = await execa(command, [path], {
    env: { ...env, PYTHONDONTWRITEBYTECODE: '1' },
    cwd: work,
    stdin: 'ignore',
    reject: false,
    timeout: RUN_MS,
  })
  const results = stdout.split('\n').flatMap(resultIn)
  if (exitCode === 0 && results.length > 0) return results
  return [
    ...results,
    { case: 'the program ends', fault: stderr.slice(-MAX_FAULT_CHARACTERS) || `exit code ${exitCode}` },
  ]
}

function resultIn(line: string): CaseResult[] {
  if (!line.startsWith('{"case"')) return []
  const { case: name, fault } = Line.parse(JSON.parse(line))
  return [{ case: name, fault: fault?.slice(0, MAX_FAULT_CHARACTERS) }]
}

/** Modules are found next to the program that loads them. */
function besideModules(file: string, directory: string, work: string): string {
  const place = join(work, basename(file, '.mjs'))
  mkdirSync(place)
  symlinkSync(join(directory, 'node_modules'), join(place, 'node_modules'))
  for (const each of [file, 'cases.ts']) cpSync(join(PROGRAMS, each), join(place, each))
  return join(place, file)
}
