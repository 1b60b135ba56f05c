/** Splits a command line into options, words and their order. Throws for an option that is not in the table. */
import { parseArgs } from 'node:util'
import { OPTIONS } from './options.ts'

type ParsedOptions = ReturnType<typeof parseOptions>
export type Values = ParsedOptions['values']
export type Token = ParsedOptions['tokens'][number]

export const parseOptions = (args: string[]) =>
  parseArgs({ args, options: OPTIONS, allowPositionals: true, tokens: true })
