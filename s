evil() { echo R >> ran; }
export PS0='$(evil)'
