/** Returns true for the directory itself and for every path below it. Compares texts: both are absolute, without `..`. */
export const isInside = (path: string, directory: string): boolean =>
  path === directory || path.startsWith(directory.endsWith('/') ? directory : `${directory}/`)
