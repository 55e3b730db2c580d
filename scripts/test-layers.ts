// The layers of the tests (test/README.md): what a file may start decides its layer, and its folder says which one it is.

export const layers = ['unit', 'flows', 'system'] as const
export type Layer = (typeof layers)[number]

/** Below these, parts of Muster run together in the process of the test. */
const inProcess = ['test/fakes/', 'test/flows/', 'test/repository/', 'test/vectors/']

export const layerOf = (file: string): Layer => {
  if (file.startsWith('src/')) return 'unit'
  return inProcess.some((folder) => file.startsWith(folder)) ? 'flows' : 'system'
}
