/** The option `tools`: which of them the server has, and which ones this program executes. */
import { PRESETS } from '../../tools/presets.ts'
import type { ToolPreset } from '../../contract/settings.ts'
import type { AnySdkTool } from '../tools/tool.ts'
import type { QueryOptions } from './query-options.ts'

export type SplitTools = {
  /** Undefined: those of the server. */
  readonly names: ToolPreset | string[] | undefined
  readonly own: readonly AnySdkTool[]
}

export function splitTools(tools: QueryOptions['tools']): SplitTools {
  if (tools === undefined || typeof tools === 'string') return { names: tools, own: [] }
  const names = tools.flatMap((each) => (typeof each === 'string' ? namesIn(each) : []))
  return { names: [...new Set(names)], own: tools.filter((each) => typeof each !== 'string') }
}

/** A name that is also a preset in a list stands for its tools. */
const namesIn = (name: string): readonly string[] => (isPreset(name) ? PRESETS[name] : [name])

const isPreset = (name: string): name is ToolPreset => Object.hasOwn(PRESETS, name)
