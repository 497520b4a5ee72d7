# A page that shows an image loads its address, and a model can be made to write data into that. So images
# of a model's text are shown as their text. internal/world/forge does the same.
def imageless:
  gsub("!\\["; "!\\[") | gsub("<(?<tag>(?:img|image|picture|source|video|audio|svg|input|object|embed|iframe|link|style)\\b)"; "&lt;\(.tag)"; "i");
